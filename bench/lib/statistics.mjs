/** @typedef {{ value: number, low: number, high: number }} Interval a figure, and where it lies with a confidence of 95 percent */

const RESAMPLES = 2_000;

/** @param {readonly number[]} values */
export function median(values) {
  return quantile(values, 0.5);
}

/** @param {readonly number[]} values */
export function mean(values) {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

/** Of ratios: one half and two average to one. @param {readonly number[]} values */
export function geometricMean(values) {
  return Math.exp(mean(values.map((value) => Math.log(value))));
}

/** The value below which the share of the others lies, interpolated. */
export function quantile(values, share) {
  const sorted = [...values].sort((a, b) => a - b);
  const place = (sorted.length - 1) * share;
  const below = Math.floor(place);
  const above = Math.ceil(place);
  return sorted[below] + (sorted[above] - sorted[below]) * (place - below);
}

/**
 * A statistic of some values with its bootstrap interval: the values are drawn anew, with replacement, two thousand times, and
 * the statistic of 95 percent of these draws lies between `low` and `high`.
 *
 * @param {readonly number[]} values independent of each other: one for each start of a process
 * @param {(values: readonly number[]) => number} [statistic]
 * @returns {Interval}
 */
export function interval(values, statistic = mean) {
  const random = randomNumbers();
  const drawn = Array.from({ length: RESAMPLES }, () =>
    statistic(values.map(() => values[Math.floor(random() * values.length)])),
  );
  return { value: statistic(values), low: quantile(drawn, 0.025), high: quantile(drawn, 0.975) };
}

/** The geometric mean of the quotients of two series that were measured side by side. @returns {Interval} */
export function ratio(values, baseline) {
  return interval(
    values.map((value, index) => value / baseline[index]),
    geometricMean,
  );
}

/** The same numbers each time: one set of values has one interval (mulberry32). */
function randomNumbers() {
  let state = 1;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
