// Keeps the panel up to date. Every page is complete without it: the server makes all parts, and this puts them in place.

const panel = document.querySelector('[data-panel]');
/** The server sends something every second. */
const patienceMs = 5_000;
let source;
let lastHeard;

function showLive(text, on = false) {
  const live = panel.querySelector('[data-live]');
  if (!live) return;
  live.textContent = text;
  live.parentElement.toggleAttribute('data-on', on);
}

function showParts({ data }) {
  lastHeard = performance.now();
  showLive('Live', true);
  for (const [name, html] of Object.entries(JSON.parse(data))) {
    const part = document.querySelector(`[data-part="${name}"]`);
    // Made by the same templates as the page, which escape everything from outside.
    if (part) part.innerHTML = html;
  }
}

/** The login has ended, perhaps in another tab: nothing on this page works any more. */
function showEnd({ data }) {
  stop('');
  panel.innerHTML = JSON.parse(data);
  for (const button of document.querySelectorAll('button')) button.disabled = true;
  for (const who of document.querySelectorAll('.who')) who.hidden = true;
}

function listen() {
  if (!panel.querySelector('[data-live]') || (source && source.readyState !== EventSource.CLOSED)) return;
  lastHeard = performance.now();
  source = new EventSource(panel.dataset.panel);
  source.addEventListener('error', () => showLive('Connecting'));
  source.addEventListener('parts', showParts);
  source.addEventListener('end', showEnd);
}

function stop(text) {
  source?.close();
  source = undefined;
  showLive(text);
}

/** Lets a button that tries again wait for as long as the service has asked for. */
function holdBack(link) {
  const { href, textContent: text } = link;
  const endsAt = performance.now() + Number(link.dataset.wait) * 1000;
  link.removeAttribute('href');
  link.role = 'link';
  link.ariaDisabled = 'true';
  const count = () => {
    const seconds = Math.ceil((endsAt - performance.now()) / 1000);
    link.textContent = seconds > 0 ? `${text} in ${seconds} s` : text;
    if (seconds > 0) return setTimeout(count, 250);
    link.href = href;
    link.ariaDisabled = null;
  };
  count();
}

if (panel) {
  listen();
  setInterval(() => {
    if (source && performance.now() - lastHeard > patienceMs) showLive('No connection');
  }, 1_000);
  addEventListener('offline', () => stop('Offline'));
  addEventListener('online', listen);
  // A browser has few connections for one host: a page that nobody sees takes none.
  document.addEventListener('visibilitychange', () => (document.hidden ? stop('Paused') : listen()));
}

for (const link of document.querySelectorAll('[data-wait]')) holdBack(link);

// Some incidents take seconds. Until then the panel goes on showing what happens.
addEventListener('submit', ({ target }) => {
  const button = target.querySelector('button');
  button.ariaBusy = 'true';
  setTimeout(() => {
    button.disabled = true;
  });
});
