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
