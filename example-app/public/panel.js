// Keeps the panel and the token's bar up to date. Every page is complete without it.

const panel = document.querySelector('[data-panel]');
const meter = document.querySelector('[data-meter]');
const steady = matchMedia('(prefers-reduced-motion: reduce)').matches;
let source;

/** Moves the bar to where the token's lifetime is now. */
function moveBar() {
  const left = Math.max(0, (Number(meter.dataset.expiresAt) - Date.now()) / 1000);
  const lifetime = (Number(meter.dataset.expiresAt) - Number(meter.dataset.issuedAt)) / 1000;
  const bar = meter.querySelector('[data-bar]');
  bar.max = Math.max(1, lifetime);
  bar.value = left;
  meter.querySelector('[data-left]').textContent = `${Math.ceil(left)} s`;
  // The time in which the package refreshes ahead of the expiry.
  meter.toggleAttribute('data-low', left < lifetime / 4);
}

function showToken({ data }) {
  const { issuedAt, expiresAt, refreshes } = JSON.parse(data);
  if (!meter) return;
  meter.querySelector('[data-refreshes]').textContent = refreshes;
  if (expiresAt === undefined) return;
  meter.dataset.issuedAt = issuedAt;
  meter.dataset.expiresAt = expiresAt;
  const expiry = meter.querySelector('[data-expiry]');
  expiry.dateTime = new Date(expiresAt).toISOString();
  expiry.textContent = new Date(expiresAt).toLocaleTimeString('en-GB');
  moveBar();
}

function showEntry({ data }) {
  const log = panel.querySelector('[data-log]');
  // Made by the same template as the rest of the page, where everything from outside is escaped.
  log.insertAdjacentHTML('afterbegin', JSON.parse(data));
  log.firstElementChild.setAttribute('data-new', '');
  fold(log.firstElementChild);
  while (log.childElementCount > 60) log.lastElementChild.remove();
}

/** Makes one line of an API call and the one before it, if both went without anything worth a line of its own. */
function fold(entry) {
  const older = entry.nextElementSibling;
  if (!older || !entry.dataset.fold || entry.dataset.fold !== older.dataset.fold) return;
  const count = Number(entry.dataset.count) + Number(older.dataset.count);
  const pids = [...new Set(`${older.dataset.pids} ${entry.dataset.pids}`.split(' '))];
  entry.dataset.count = count;
  entry.dataset.pids = pids.join(' ');
  entry.querySelector('b').textContent = `${count} × ${entry.dataset.fold}`;
  entry.querySelector('.note').textContent = `process${pids.length > 1 ? 'es' : ''} ${pids.join(' and ')}`;
  entry.querySelector('ul')?.append(...(older.querySelector('ul')?.children ?? []));
  older.remove();
}

function showLive(text, on) {
  const live = panel.querySelector('[data-live]');
  live.textContent = text;
  live.parentElement.toggleAttribute('data-on', on);
}

function listen() {
  if (source && source.readyState !== EventSource.CLOSED) return;
  source = new EventSource(panel.dataset.panel);
  source.addEventListener('open', () => showLive('Live', true));
  source.addEventListener('error', () => showLive('Connecting', false));
  source.addEventListener('token', showToken);
  source.addEventListener('entry', (event) => {
    // Where the next stream begins, if this one is ended while the page is hidden.
    panel.dataset.panel = `/panel/events?after=${event.lastEventId}`;
    showEntry(event);
  });
  source.addEventListener('end', () => {
    source.close();
    showLive('Logged out', false);
  });
}

/** Asks for the projects many times at once, after having the token refused if that is wanted. */
async function burst(button) {
  const count = Number(button.dataset.burst);
  const result = panel.querySelector('[data-burst-result]');
  button.disabled = true;
  if ('expire' in button.dataset) await fetch('/panel/expire', { method: 'POST', redirect: 'manual' });
  const answers = await Promise.allSettled(Array.from({ length: count }, () => fetch('/panel/call')));
  const good = answers.filter(({ value }) => value?.ok).length;
  result.textContent = `${good} of ${count} succeeded`;
  button.disabled = false;
}

if (meter) {
  moveBar();
  setInterval(moveBar, steady ? 1000 : 200);
}

if (panel) {
  for (const entry of panel.querySelectorAll('[data-fold]')) fold(entry);
  listen();
  // A browser has few connections for one host: a page that nobody sees takes none.
  document.addEventListener('visibilitychange', () => {
    if (!document.hidden) return listen();
    source.close();
    showLive('Paused', false);
  });
  for (const hidden of panel.querySelectorAll('[data-needs-script]')) hidden.hidden = false;
  for (const button of panel.querySelectorAll('[data-burst]')) button.addEventListener('click', () => burst(button));
}
