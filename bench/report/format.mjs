/** @typedef {readonly (readonly string[])[]} Table the first row is the head */
/** @typedef {import('../lib/statistics.mjs').Interval} Interval */

/** A number with so many digits as tell something. */
export function figure(value) {
  if (value === undefined) return '';
  if (value >= 1000) return Math.round(value).toLocaleString('en');
  if (value >= 100) return value.toFixed(0);
  if (value >= 10) return value.toFixed(1);
  return value.toFixed(2);
}

/** A whole number. */
export function count(value) {
  return value.toLocaleString('en');
}

export function mebibytes(bytes) {
  return `${figure(bytes / 2 ** 20)} MiB`;
}

/** A figure and its interval. @param {Interval} interval */
export function spread({ value, low, high }) {
  return `${figure(value)} (${figure(low)}–${figure(high)})`;
}

/** @param {Table} table */
export function asText(table) {
  const widths = table[0].map((_cell, column) => Math.max(...table.map((row) => (row[column] ?? '').length)));
  const line = (row) =>
    row.map((cell, column) => (column === 0 ? cell.padEnd(widths[0]) : cell.padStart(widths[column]))).join('  ');
  return table.map(line).join('\n');
}

/** @param {Table} table */
export function asMarkdown([head, ...rows]) {
  const line = (row) => `| ${row.join(' | ')} |`;
  return [line(head), line(head.map((_cell, index) => (index === 0 ? '---' : '---:'))), ...rows.map(line)].join('\n');
}
