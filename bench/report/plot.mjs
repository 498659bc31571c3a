const WIDTH = 760;
const LABEL_WIDTH = 300;
const BAR_HEIGHT = 18;
const ROW_HEIGHT = 24;
const TITLE_HEIGHT = 34;
const BAR_ROOM = WIDTH - LABEL_WIDTH - 70;

const cpuRatio = (row) => row.cpuRatio.value;

/** The panels of the plot: which figure of which scenario, each in its own scale. */
const PANELS = [
  ['overhead', 'Logged-in request, no API call: CPU against bare Express (1.00)', cpuRatio],
  ['application', 'GET /projects: CPU against the floor (1.00)', cpuRatio],
  ['api-loop', 'Loop of API calls, 25 projects: CPU against the bare dispatcher (1.00)', cpuRatio],
  ['logins', 'Whole logins, eight at a time: CPU against the floor (1.00)', cpuRatio],
  ['forward', 'A request passed on to the API: CPU against a pass-through by hand (1.00)', cpuRatio],
  ['stampede', '200 requests with an expired token: requests that failed', (row) => row.failures],
];

/** Bars of the main figures, as SVG that reads on light and on dark ground. */
export function plot(scenarios) {
  let top = 8;
  const drawn = PANELS.filter(([scenario]) => scenarios[scenario] !== undefined).map(([scenario, title, figureOf]) => {
    const shown = scenarios[scenario].rows.filter(({ projects = 25 }) => projects === 25);
    const rows = shown.map((row) => ({ name: row.name, value: figureOf(row) }));
    const svg = drawPanel(title, rows, top);
    top += TITLE_HEIGHT + rows.length * ROW_HEIGHT + 12;
    return svg;
  });
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${top}" role="img" aria-label="Main figures of the benchmark">
<style>
text { font: 13px system-ui, sans-serif; fill: #24292f }
.title { font-weight: 600 }
.bar { fill: #8c959f }
.ours { fill: #0969da }
@media (prefers-color-scheme: dark) { text { fill: #e6edf3 } .bar { fill: #6e7681 } .ours { fill: #58a6ff } }
</style>
${drawn.join('\n')}
</svg>
`;
}

function drawPanel(title, rows, top) {
  const most = Math.max(...rows.map(({ value }) => value));
  const bars = rows.map(({ name, value }, index) => {
    const y = top + TITLE_HEIGHT + index * ROW_HEIGHT;
    const width = Math.max(1, (value / most) * BAR_ROOM);
    const kind = name.startsWith('passport-oauth-app') ? 'bar ours' : 'bar';
    return `<text x="${LABEL_WIDTH - 8}" y="${y + 14}" text-anchor="end">${escaped(name)}</text>
<rect class="${kind}" x="${LABEL_WIDTH}" y="${y}" width="${width.toFixed(1)}" height="${BAR_HEIGHT}" rx="2"/>
<text x="${(LABEL_WIDTH + width + 6).toFixed(1)}" y="${y + 14}">${Number.isInteger(value) ? value : value.toFixed(2)}</text>`;
  });
  return [`<text class="title" x="8" y="${top + 20}">${escaped(title)}</text>`, ...bars].join('\n');
}

function escaped(text) {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
}
