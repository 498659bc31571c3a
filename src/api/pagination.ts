import { ofStrategy } from '../errors.js';
import type { ApiContext } from './api-context.js';
import { field, unusableResponse } from './api-error.js';
import { CallLimit } from './call-limits.js';
import { type CallRequest, type RequestOptions, requestTo } from './call-options.js';
import {
  LinkedPages,
  type List,
  type NextPage,
  numberIn,
  OffsetPages,
  type Page,
  type Position,
} from './list-pages.js';
import { apiPath, type Query, queryString } from './request-target.js';
import type { ApiResponse } from './response.js';

/** Options of `paginate`; those of a call apply to each page, `timeout` among them. */
export interface PaginateOptions<T = unknown> extends Omit<RequestOptions, 'json' | 'body'> {
  /** Items requested at once. Default: 100. The service may return fewer at once: its own `pagination.limit` counts. */
  readonly limit?: number | undefined;
  /** Items skipped at the start. Default: 0. */
  readonly offset?: number | undefined;
  /** Requests the next page while the items of one are processed; two pages are in memory then. Default: `false`. */
  readonly readAhead?: boolean | undefined;
  /** Returns all items of a page, for pages that are not `{ data: [{ data }] }`. It must not skip any: fewer than `limit` end the list. */
  readonly items?: ((page: unknown) => readonly T[]) | undefined;
  /**
   * Returns where the next page is, for lists with a cursor or a `Link` header instead of an `offset`: a URL of the API, a
   * path, parameters that replace those of the same name, or `undefined` or `false` after the last page.
   */
  readonly next?: ((page: unknown, response: ApiResponse) => NextPage) | undefined;
  /** Pages after which a list that has not ended is an error. Default: no limit. */
  readonly maxPages?: number | undefined;
}

/** Makes one call, and returns its parsed response. */
export type GetPage = (request: CallRequest) => Promise<ApiResponse>;

const DEFAULT_LIMIT = 100;

/**
 * Returns the items of a list, page by page.
 *
 * @param get Makes the call for one page
 * @throws TypeError for wrong options
 */
export function paginate<T>(
  get: GetPage,
  context: ApiContext,
  path: string,
  options: PaginateOptions<T>,
): AsyncIterableIterator<T> {
  const { limit: _limit, offset: _offset, maxPages, ...given } = options;
  const { readAhead = false, items, next, query, ...others } = given;
  const limit = options.limit ?? numberIn(query, 'limit');
  const offset = options.offset ?? numberIn(query, 'offset');
  checkNumber('limit', limit, 1);
  checkNumber('offset', offset, 0);
  checkNumber('maxPages', maxPages, 1);
  if (items !== undefined && typeof items !== 'function') throw new TypeError('items: expected a function');
  if (next !== undefined && typeof next !== 'function') throw new TypeError('next: expected a function');
  const defaults = context.headers.parsed;
  const checkedPath = apiPath(path);
  requestTo({ path: checkedPath, query: queryString(query) }, 'GET', others, defaults);
  const size = next === undefined ? (limit ?? DEFAULT_LIMIT) : limit;
  const common = merged(query, { limit: size });
  const list: List<T> = {
    path,
    target: (parameters) => ({ path: checkedPath, query: queryString(merged(common, parameters)) }),
    get: (target, signal) => get(requestTo(target, 'GET', { ...others, signal }, defaults)),
    itemsOf: (response) => {
      const found: unknown = items === undefined ? wrappedItems(response.data) : items(response.data);
      if (Array.isArray(found)) return found;
      if (items === undefined) throw list.unusable(response, WRONG_SHAPE);
      throw new TypeError('items: expected an array; return [...list] for a Set or an iterator');
    },
    unusable: ({ data, headers }, reason) =>
      ofStrategy(unusableResponse(reason, { data, headers, method: 'GET', path }), context.strategyName),
  };
  const strategy = next === undefined ? new OffsetPages(list, limit ?? DEFAULT_LIMIT) : new LinkedPages(list, next);
  const start = list.target({ offset: next === undefined ? (offset ?? 0) : offset });
  return iterate(getPage, context, { target: start, offset: offset ?? 0, number: 1 }, readAhead, options.signal);

  async function getPage(position: Position, signal: AbortSignal): Promise<Page<T>> {
    const response = await list.get(position.target, signal);
    const page = await strategy.follow({ response, items: list.itemsOf(response), position, signal });
    if (page.next === undefined || maxPages === undefined || position.number < maxPages) return page;
    throw list.unusable(response, `the list has not ended after ${maxPages} pages, the option \`maxPages\`.`);
  }
}

const WRONG_SHAPE =
  'the body is not a page of the shape { data: [{ data }] }; set the option `items` for another shape.';

/** Returns the items of `{ data: [{ data }] }`; `undefined` for another shape. */
function wrappedItems(page: unknown): readonly unknown[] | undefined {
  const list = field(page, 'data');
  const isWrapped = (entry: unknown) => typeof entry === 'object' && entry !== null && 'data' in entry;
  return Array.isArray(list) && list.every(isWrapped) ? list.map(({ data }) => data) : undefined;
}

function checkNumber(option: string, value: number | undefined, min: number): void {
  if (value === undefined || (Number.isSafeInteger(value) && value >= min)) return;
  throw new TypeError(`${option}: expected an integer, ${min} or more`);
}

async function* iterate<T>(
  getPage: (position: Position, signal: AbortSignal) => Promise<Page<T>>,
  { deadlines }: ApiContext,
  start: Position,
  readAhead: boolean,
  signal: AbortSignal | undefined,
): AsyncGenerator<T, void, undefined> {
  // Created with the first item: an iterator that is never used must not hold the caller's signal.
  const limit = new CallLimit(deadlines, Infinity, signal);
  let pending = getPage(start, limit.signal);
  try {
    for (;;) {
      const { items, next } = await pending;
      const ahead = readAhead && next !== undefined ? getPage(next, limit.signal) : undefined;
      // Its error is for the reader who gets there.
      ahead?.catch(() => {});
      yield* items;
      if (next === undefined) return;
      pending = ahead ?? getPage(next, limit.signal);
    }
  } finally {
    limit.abort();
  }
}

/** Returns the parameters of both; those of `more` replace those of the same name. */
function merged(query: RequestOptions['query'], more: Query | URLSearchParams): Query | URLSearchParams {
  if (!(query instanceof URLSearchParams) && !(more instanceof URLSearchParams)) return { ...query, ...more };
  const parameters = new URLSearchParams(queryString(query));
  const added = [...new URLSearchParams(queryString(more))];
  for (const [name] of added) parameters.delete(name);
  for (const [name, value] of added) parameters.append(name, value);
  return parameters;
}
