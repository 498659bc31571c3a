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
