/** Style sheet of the service's pages. It loads no font and no image. */
export const css = `
:root {
  color-scheme: light dark;
  --page: #f1f3f7; --card: #ffffff; --line: #d5dae3; --text: #1a2130; --soft: #566074;
  --accent: #2450d8; --accent-over: #1b3fae; --on-accent: #ffffff; --tint: #eaf0ff; --code: #f1f3f7;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #10141c; --card: #1a202c; --line: #333d4f; --text: #edf0f6; --soft: #a9b3c5;
    --accent: #8fb0ff; --accent-over: #b0c8ff; --on-accent: #0d1830; --tint: #222d47; --code: #252d3c;
  }
}
* { box-sizing: border-box; }
body {
  margin: 0; min-height: 100vh; padding: 24px 16px; display: flex; flex-direction: column; gap: 16px;
  align-items: center; justify-content: center; background: var(--page); color: var(--text);
  font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Liberation Sans", sans-serif;
}
main {
  width: 100%; max-width: 460px; padding: 32px; background: var(--card); border: 1px solid var(--line);
  border-radius: 14px; box-shadow: 0 8px 28px rgb(16 24 40 / 8%); overflow-wrap: anywhere;
}
h1 { margin: 0 0 8px; font-size: 1.4rem; line-height: 1.3; }
p { margin: 0 0 16px; }
.soft, footer { color: var(--soft); font-size: .875rem; }
footer { text-align: center; }
fieldset { margin: 0 0 20px; padding: 0; border: 0; min-width: 0; }
legend, h2 { padding: 0; margin: 0 0 8px; font-size: .875rem; font-weight: 600; color: var(--soft); }
.users { display: grid; gap: 8px; max-height: 264px; overflow: auto; padding: 3px; margin: -3px; }
.user {
  display: flex; align-items: center; gap: 12px; padding: 10px 14px; border: 1px solid var(--line);
  border-radius: 10px; cursor: pointer;
}
.user:hover { border-color: var(--accent); }
.user:has(:checked) { border-color: var(--accent); background: var(--tint); box-shadow: inset 0 0 0 1px var(--accent); }
.user input { flex: none; width: 18px; height: 18px; margin: 0; accent-color: var(--accent); }
.user b, .user span { display: block; }
.user b { font-weight: 600; }
.user:has(:focus-visible), button:focus-visible { outline: 3px solid var(--accent); outline-offset: 2px; }
.user input:focus { outline: none; }
ul { list-style: none; margin: 0 0 20px; padding: 0; border: 1px solid var(--line); border-radius: 10px; }
li { display: flex; align-items: center; justify-content: space-between; gap: 12px; padding: 10px 14px; }
li + li { border-top: 1px solid var(--line); }
code {
  flex: none; max-width: 60%; padding: 1px 6px; border-radius: 5px; background: var(--code); color: var(--soft);
  font: .8125rem/1.5 ui-monospace, "SF Mono", Menlo, Consolas, "Liberation Mono", monospace;
}
pre {
  margin: 0 0 16px; padding: 10px 12px; border-radius: 8px; background: var(--code); white-space: pre-wrap;
  overflow-wrap: anywhere; font: .8125rem/1.5 ui-monospace, "SF Mono", Menlo, Consolas, "Liberation Mono", monospace;
}
.choice { display: grid; grid-template-columns: 1fr 1fr; gap: 12px; margin-bottom: 16px; }
button {
  font: inherit; font-weight: 600; padding: 11px 16px; border-radius: 10px; border: 1px solid var(--line);
  background: transparent; color: var(--text); cursor: pointer;
}
button:hover { border-color: var(--soft); }
button.approve { background: var(--accent); border-color: var(--accent); color: var(--on-accent); }
button.approve:hover { background: var(--accent-over); border-color: var(--accent-over); }
main > p:last-child, form > p:last-child { margin: 0; }
@media (max-width: 480px) { main { padding: 24px 20px; } }
`;

/** Style sheet of the status page, in addition to the one of all pages. */
export const statusCss = `
:root { --good: #146c3a; --good-tint: #e3f5ea; --bad: #a3211f; --bad-tint: #fdeaea; --warn: #7a4b00; --warn-tint: #fff1d6; }
@media (prefers-color-scheme: dark) {
  :root { --good: #7fdca4; --good-tint: #17342a; --bad: #ffa8a3; --bad-tint: #45201f; --warn: #f3c878; --warn-tint: #3d2f14; }
}
body { display: block; max-width: 1280px; margin: 0 auto; padding: 28px 20px 40px; }
header { display: flex; flex-wrap: wrap; align-items: baseline; gap: 4px 16px; margin: 0 4px 20px; }
header h1 { margin: 0; font-size: 1.5rem; }
header p { margin: 0; overflow-wrap: anywhere; }
header a { color: var(--accent); margin-left: auto; }
main { max-width: none; padding: 0; border: 0; background: none; box-shadow: none; border-radius: 0; }
main { display: grid; gap: 20px; align-items: start; }
.column { display: grid; gap: 20px; min-width: 0; align-content: start; }
@media (min-width: 960px) { main { grid-template-columns: 400px minmax(0, 1fr); } }
.card {
  min-width: 0; padding: 20px; background: var(--card); border: 1px solid var(--line); border-radius: 14px;
  box-shadow: 0 8px 28px rgb(16 24 40 / 6%);
}
.card h2 { display: flex; justify-content: space-between; gap: 12px; margin: 0 0 12px; font-size: 1rem; color: var(--text); }
.card h2 .soft { font-weight: 400; }
.card fieldset { margin: 0 0 14px; }
.card ul { margin: 0; }
.card form + form, #queue ul, #queue ul + form { margin-top: 14px; }
.card li > span:first-child { flex: 1; min-width: 0; }
.card li > .badge, .card li form { flex: none; }
.card li b { font-weight: 600; }
.card li .soft { display: block; }
.empty { margin: 0; color: var(--soft); font-size: .875rem; }
.segments { display: grid; grid-template-columns: repeat(3, 1fr); gap: 8px; }
.segments label, .check {
  display: flex; align-items: center; justify-content: center; gap: 8px; padding: 8px 10px; border: 1px solid var(--line);
  border-radius: 10px; cursor: pointer; font-size: .875rem;
}
.segments label:hover { border-color: var(--accent); }
.segments label:has(:checked) { border-color: var(--accent); background: var(--tint); box-shadow: inset 0 0 0 1px var(--accent); }
.segments label:has(:focus-visible), .check:has(:focus-visible), summary:focus-visible {
  outline: 3px solid var(--accent); outline-offset: 2px;
}
.segments input, .check input { flex: none; width: 16px; height: 16px; margin: 0; accent-color: var(--accent); }
.segments input:focus, .check input:focus { outline: none; }
.check { justify-content: flex-start; padding: 0; border: 0; margin: 0 0 14px; }
.buttons { display: grid; grid-template-columns: repeat(auto-fill, minmax(150px, 1fr)); gap: 8px; }
.buttons.three { grid-template-columns: repeat(3, 1fr); }
.card form > button:only-child:not(.small) { width: 100%; }
.card button { padding: 8px 10px; font-size: .875rem; }
.card button.small { padding: 4px 10px; font-weight: 500; }
.card button.danger { color: var(--bad); }
.card dl { display: grid; grid-template-columns: auto minmax(0, 1fr); gap: 6px 12px; margin: 0; font-size: .875rem; }
.card dt { color: var(--soft); }
.card dd { margin: 0; overflow-wrap: anywhere; }
.card code, .card dd code { max-width: 100%; overflow-wrap: anywhere; }
.requests { list-style: none; }
.requests li { display: block; padding: 0; }
details summary {
  display: grid; grid-template-columns: 10px 3.4em minmax(0, 1fr) auto auto; align-items: center; gap: 4px 12px;
  padding: 10px 14px; cursor: pointer; border-radius: 10px; list-style: none;
}
summary::-webkit-details-marker { display: none; }
summary::before { content: "›"; color: var(--soft); font-weight: 600; line-height: 1; transition: transform .12s; }
details[open] summary::before { transform: rotate(90deg); }
summary:hover { background: var(--code); }
summary .path { min-width: 0; overflow-wrap: anywhere; font: .875rem/1.5 ui-monospace, "SF Mono", Menlo, Consolas, "Liberation Mono", monospace; }
summary .method { font-weight: 600; font-size: .8125rem; }
summary .soft { font-variant-numeric: tabular-nums; }
.badge {
  min-width: 3.6em; padding: 1px 8px; border-radius: 999px; text-align: center; font-size: .8125rem; font-weight: 600;
  background: var(--code); color: var(--soft);
}
.badge.good { background: var(--good-tint); color: var(--good); }
.badge.bad { background: var(--bad-tint); color: var(--bad); }
.badge.warn { background: var(--warn-tint); color: var(--warn); }
pre { margin: 0 14px 12px; }
time.life { font-variant-numeric: tabular-nums; }
[role=status]:not(:empty) { margin: 0 4px 20px; padding: 10px 14px; border-radius: 10px; background: var(--bad-tint); color: var(--bad); }
@media (max-width: 420px) {
  body { padding: 20px 12px 32px; }
  .card { padding: 16px; }
  .buttons { grid-template-columns: 1fr 1fr; }
  .segments label { padding: 8px 4px; gap: 6px; font-size: .8125rem; }
  details summary { gap: 4px 8px; padding: 10px; }
  .card summary .soft { display: none; }
}
@media (prefers-reduced-motion: reduce) { summary::before { transition: none; } }
`;

/**
 * Script of the status page, which also works without it: updates the page at each change, submits forms without leaving the page, and
 * counts down the life of tokens.
 */
export const statusScript = `
'use strict';
const offset = Number(document.body.dataset.now) - Date.now();
let lastUpdate = Promise.resolve();

function replaceParts(text) {
  const next = new DOMParser().parseFromString(text, 'text/html');
  for (const part of document.querySelectorAll('[data-live]')) {
    const fresh = next.getElementById(part.id);
    if (fresh === null || fresh.innerHTML === part.dataset.shown) continue;
    const focused = part.contains(document.activeElement) ? document.activeElement.dataset.key : undefined;
    const open = [...part.querySelectorAll('details[open]')].map(({ id }) => id);
    part.dataset.shown = fresh.innerHTML;
    part.innerHTML = fresh.innerHTML;
    for (const id of open) document.getElementById(id)?.setAttribute('open', '');
    if (focused !== undefined) part.querySelector('[data-key="' + CSS.escape(focused) + '"]')?.focus();
  }
  countDown();
}

async function update(request) {
  const status = document.getElementById('problem');
  try {
    const response = await request();
    if (!response.ok) throw new Error((await response.json()).error.message);
    replaceParts(await response.text());
    status.textContent = '';
  } catch (error) {
    status.textContent = error instanceof TypeError ? 'The emulator does not answer.' : error.message;
  }
}

function later(request) {
  lastUpdate = lastUpdate.then(() => update(request));
}

function countDown() {
  for (const life of document.querySelectorAll('[data-expires]')) {
    const left = Math.ceil((Number(life.dataset.expires) - Date.now() - offset) / 1000);
    const [h, m, s] = [Math.floor(left / 3600), Math.floor(left / 60) % 60, left % 60];
    life.textContent = left <= 0 ? 'expired' : h > 0 ? h + ' h ' + m + ' min' : m > 0 ? m + ' min ' + s + ' s' : s + ' s';
  }
}

document.addEventListener('submit', (event) => {
  event.preventDefault();
  const body = new URLSearchParams(new FormData(event.target, event.submitter));
  later(() => fetch(event.target.action, { method: 'POST', body, headers: { accept: 'text/html' } }));
});
const changes = new EventSource('/_emulator/events');
changes.onmessage = changes.onopen = () => later(() => fetch('/'));
setInterval(countDown, 1000);
`;
