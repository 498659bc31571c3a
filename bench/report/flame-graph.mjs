const WIDTH = 1200;
const ROW = 17;
const TOP = 44;
const MOST_BYTES = 190_000;
const LEAST_SHARE = 0.003;

const COLORS = {
  'passport-oauth-app': '#4f9cf0',
  Express: '#e8a33d',
  'express-session': '#d9773a',
  Passport: '#5fb37a',
  undici: '#b58ce0',
  'Redis client': '#d36a6a',
  application: '#8fb3c9',
  'other packages': '#c9b79c',
  Node: '#b8bec6',
  'native code': '#d0d4d9',
  'garbage collection': '#e07a7a',
};

/**
 * Draws a profile: each box is a function, as wide as its share of the CPU time, above the function that called it. Boxes below
 * 0.3 percent are left out, and narrower ones too until the picture is small enough for a page.
 *
 * @param {string} title
 * @param {import('./profile.mjs').Frame} profile
 */
export function flameGraph(title, profile) {
  for (let leastShare = LEAST_SHARE; ; leastShare *= 1.3) {
    const svg = draw(title, profile, leastShare);
    if (Buffer.byteLength(svg) <= MOST_BYTES) return svg;
  }
}

function draw(title, profile, leastShare) {
  const boxes = [];
  let deepest = 0;
  const place = (frame, x, depth) => {
    if (frame.total / profile.total < leastShare) return;
    deepest = Math.max(deepest, depth);
    boxes.push({ frame, x, depth, width: (frame.total / profile.total) * WIDTH });
    let left = x;
    for (const child of [...frame.children].sort((a, b) => b.total - a.total)) {
      place(child, left, depth + 1);
      left += (child.total / profile.total) * WIDTH;
    }
  };
  place({ ...profile, name: 'all', file: '' }, 0, 0);
  const height = TOP + (deepest + 1) * ROW + 6;
  const drawn = boxes.map((one) => box(one, profile.total, height));
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" role="img" aria-label="${escaped(title)}">
<style>text{font:11px ui-monospace,monospace;fill:#1b1f24}.title{font:600 13px system-ui,sans-serif}rect{stroke:#fff;stroke-width:.5}</style>
<rect width="${WIDTH}" height="${height}" fill="#fff"/>
<text class="title" x="6" y="16">${escaped(title)}</text>
${legend(boxes)}
${drawn.join('\n')}
</svg>
`;
}

function legend(boxes) {
  const parts = [...new Set(boxes.map(({ frame }) => frame.part))].filter((part) => part !== 'native code');
  return parts
    .map((part, index) => {
      const x = 6 + index * 148;
      return `<rect x="${x}" y="24" width="10" height="10" fill="${COLORS[part]}"/><text x="${x + 14}" y="33">${escaped(part)}</text>`;
    })
    .join('\n');
}

function box({ frame, x, depth, width }, total, height) {
  const y = height - 6 - (depth + 1) * ROW;
  const share = ((frame.total / total) * 100).toFixed(1);
  const label = shortened(frame.name, Math.floor((width - 6) / 6.7));
  const text = label === '' ? '' : `<text x="${(x + 3).toFixed(1)}" y="${y + 12}">${escaped(label)}</text>`;
  const about = [frame.name, frame.file, `${share}%`].filter((part) => part !== '').join(' · ');
  return `<g><title>${escaped(about)}</title><rect x="${x.toFixed(1)}" y="${y}" width="${Math.max(0.5, width).toFixed(1)}" height="${ROW - 1}" fill="${COLORS[frame.part]}"/>${text}</g>`;
}

function shortened(name, room) {
  if (room < 3) return '';
  return name.length <= room ? name : `${name.slice(0, room - 1)}…`;
}

function escaped(text) {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;');
}
