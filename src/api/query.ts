/** A value of a query parameter. A date is sent in ISO 8601, `undefined` not at all. */
export type QueryValue = string | number | bigint | boolean | Date | undefined;

/** Query parameters. An array gives the same name several times. */
export type Query = Readonly<Record<string, QueryValue | readonly QueryValue[]>>;

/**
 * The query part of a request: empty, or with a leading `?`.
 *
 * @throws TypeError for anything that has no obvious form in a query: objects, `null`, `NaN`, invalid dates, lone
 *   surrogates. Its message names the parameter and never its value.
 */
export function queryString(query: Query | URLSearchParams | undefined): string {
  if (query === undefined) return '';
  const text = query instanceof URLSearchParams ? query.toString() : pairsOf(query).join('&');
  return text === '' ? '' : `?${text}`;
}

function pairsOf(query: Query): string[] {
  if (typeof query !== 'object' || query === null || Symbol.iterator in query) {
    throw new TypeError('query: expected an object of parameters, or URLSearchParams');
  }
  return Object.entries(query).flatMap(([name, value]) => {
    const values: readonly QueryValue[] = isList(value) ? value : [value];
    return values
      .filter((one) => one !== undefined)
      .map((one) => `${encode(name, name)}=${encode(name, textOf(name, one))}`);
  });
}

function isList(value: Query[string]): value is readonly QueryValue[] {
  return Array.isArray(value);
}

function textOf(name: string, value: QueryValue): string {
  if (typeof value === 'string') return value;
  if (typeof value === 'boolean' || typeof value === 'bigint') return String(value);
  if (typeof value === 'number' && Number.isFinite(value)) return String(value);
  if (value instanceof Date && Number.isFinite(value.getTime())) return value.toISOString();
  throw unsuitable(name);
}

function encode(name: string, text: string): string {
  try {
    return encodeURIComponent(text);
  } catch {
    throw unsuitable(name);
  }
}

function unsuitable(name: string): TypeError {
  const shown = /^[\w.[\]-]{1,64}$/.test(name) ? ` ${name}` : '';
  return new TypeError(`query: the parameter${shown} is no string, finite number, boolean, date or list of these`);
}
