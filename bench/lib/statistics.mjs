/** @param {readonly number[]} values */
export function median(values) {
  return quantile(values, 0.5);
}

/** The value below which the share of the others lies, interpolated. */
export function quantile(values, share) {
  const sorted = [...values].sort((a, b) => a - b);
  const place = (sorted.length - 1) * share;
  const below = Math.floor(place);
  const above = Math.ceil(place);
  return sorted[below] + (sorted[above] - sorted[below]) * (place - below);
}

/** Median and quartiles. */
export function summary(values) {
  return { median: median(values), low: quantile(values, 0.25), high: quantile(values, 0.75) };
}

/** The same for the quotients of two series that were measured in pairs. */
export function ratios(values, baseline) {
  return summary(values.map((value, index) => value / baseline[index]));
}
