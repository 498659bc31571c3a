import { lifetime } from './tables.mjs';

const WIDTH = 760;
const PANEL_HEIGHT = 230;
const LEFT = 62;
const PLOT_WIDTH = 250;
const GAP = 118;
const PLOT_HEIGHT = 138;
const TOP = 48;
const COLORS = { memory: '#0969da', Redis: '#cf222e', PostgreSQL: '#1a7f37', all: '#0969da' };

/** Which scenario, what lies on the horizontal axis, and which figures on the vertical ones. */
const PANELS = [
  {
    scenario: 'growth-grants',
    axis: 'grants',
    x: (row) => row.grants,
    label: (value) => `10${'⁰¹²³⁴⁵⁶⁷'[Math.round(Math.log10(value))]}`,
  },
  {
    scenario: 'growth-processes',
    axis: 'processes, one store',
    x: (row) => row.processes,
    label: String,
  },
  {
    scenario: 'growth-lifetimes',
    axis: 'lifetime of access tokens',
    x: (row) => row.lifetimeS,
    label: lifetime,
  },
];

/** Lines of CPU and latency over grants, processes and lifetimes, as SVG that reads on light and on dark ground. */
export function growthPlot(scenarios) {
  const panels = PANELS.filter(({ scenario }) => scenarios[scenario] !== undefined);
  if (panels.length === 0) return undefined;
  const drawn = panels.map((panel, index) => drawPanel(panel, scenarios[panel.scenario].rows, index * PANEL_HEIGHT));
  const height = panels.length * PANEL_HEIGHT + 8;
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" role="img" aria-label="CPU and latency of a request as grants, processes and lifetimes grow">
<style>
text { font: 12px system-ui, sans-serif; fill: #24292f }
.title { font-weight: 600 }
.axis { stroke: #8c959f; stroke-width: 1 }
.line { fill: none; stroke-width: 2 }
.dashed { stroke-dasharray: 5 4 }
@media (prefers-color-scheme: dark) { text { fill: #e6edf3 } }
</style>
${drawn.join('\n')}
</svg>
`;
}

function drawPanel({ axis, x, label }, rows, top) {
  const stores = [...new Set(rows.map(({ store = 'all' }) => store))];
  const xs = [...new Set(rows.map(x))];
  const series = (value, style) =>
    stores.map((store) => ({
      store,
      style,
      points: rows.filter((row) => (row.store ?? 'all') === store).map((row) => [x(row), value(row)]),
    }));
  const cpu = series((row) => row.cpuUs.value, '');
  const latency = [...series((row) => row.p50Ms, ''), ...series((row) => row.p99Ms, 'dashed')];
  const place = { xs, label, axis, top: top + TOP };
  return [
    drawAxes({ ...place, left: LEFT, title: 'CPU µs for a request', series: cpu }),
    drawAxes({ ...place, left: LEFT + PLOT_WIDTH + GAP, title: 'latency ms: p50, p99 dashed', series: latency }),
    stores.length > 1 ? drawLegend(stores, top) : '',
  ].join('\n');
}

function drawLegend(stores, top) {
  return stores
    .map((store, index) => {
      const left = LEFT + index * 110;
      return `<rect x="${left}" y="${top + 8}" width="12" height="4" fill="${COLORS[store]}"/><text x="${left + 18}" y="${top + 15}">${store}</text>`;
    })
    .join('\n');
}

/** The horizontal axis is logarithmic, the vertical one begins at zero. */
function drawAxes({ xs, label, axis, top, left, title, series }) {
  const most = niceCeiling(Math.max(...series.flatMap(({ points }) => points.map(([, value]) => value))));
  const [first, last] = [Math.log(xs[0]), Math.log(xs.at(-1))];
  const px = (value) => (left + ((Math.log(value) - first) / (last - first || 1)) * PLOT_WIDTH).toFixed(1);
  const py = (value) => (top + PLOT_HEIGHT - (value / most) * PLOT_HEIGHT).toFixed(1);
  const bottom = top + PLOT_HEIGHT;
  const ticks = [0, most / 2, most].map(
    (value) =>
      `<text x="${left - 6}" y="${Number(py(value)) + 4}" text-anchor="end">${Number(value.toPrecision(3))}</text>`,
  );
  const marks = xs.map(
    (value) => `<text x="${px(value)}" y="${bottom + 16}" text-anchor="middle">${label(value)}</text>`,
  );
  const lines = series.map(({ store, style, points }) => {
    const path = points.map(([at, value]) => `${px(at)},${py(value)}`).join(' ');
    return `<polyline class="line ${style}" stroke="${COLORS[store]}" points="${path}"/>`;
  });
  return [
    `<text class="title" x="${left}" y="${top - 12}">${title}</text>`,
    `<path class="axis" fill="none" d="M${left} ${top}V${bottom}H${left + PLOT_WIDTH}"/>`,
    ...ticks,
    ...marks,
    `<text x="${left + PLOT_WIDTH / 2}" y="${bottom + 32}" text-anchor="middle">${axis}</text>`,
    ...lines,
  ].join('\n');
}

/** 1, 2 or 5 times a power of ten, or one of the tenths between, at least as large. */
function niceCeiling(value) {
  const power = 10 ** Math.floor(Math.log10(value));
  const step = [1, 1.5, 2, 3, 4, 5, 6, 8, 10].find((one) => one * power >= value);
  return step * power;
}
