import type { ApiContext } from './api-context.js';
import { field, unusableResponse } from './api-error.js';
import { CallLimit } from './call-limits.js';
import { type CallRequest, type RequestOptions, requestTo } from './call-options.js';
import { apiPath, type Query, queryString, type RequestTarget, targetOf } from './request-target.js';
import type { ApiResponse } from './response.js';

/** What `next` returns: where the next page is, or `undefined` after the last one. */
export type NextPage = string | URL | Query | URLSearchParams | undefined;

/** Options of `paginate`; those of a call hold for each page, `timeout` among them. */
export interface PaginateOptions<T = unknown> extends Omit<RequestOptions, 'json' | 'body'> {
  /** Items requested at once. Default: 100. The service may return fewer at once: its own `pagination.limit` is heeded. */
  readonly limit?: number | undefined;
  /** Items left out at the start. Default: 0. */
  readonly offset?: number | undefined;
  /** Requests the next page while the items of one are processed; two pages are in memory then. Default: `false`. */
  readonly readAhead?: boolean | undefined;
  /** Returns all items of a page, for pages that are not `{ data: [{ data }] }`. It must leave none out: fewer than `limit` end the list. */
  readonly items?: ((page: unknown) => readonly T[]) | undefined;
  /**
   * Returns where the next page is, for lists with a cursor or a `Link` header in place of an `offset`: a URL of the API,
   * a path, parameters that replace those of the same name, or `undefined` after the last page.
   */
  readonly next?: ((page: unknown, response: ApiResponse) => NextPage) | undefined;
}

/** One page of a list. */
interface Page<T> {
  readonly items: readonly T[];
  /** `undefined` after the last page. */
  readonly next: Position | undefined;
}

/** Where a page is. */
interface Position {
  readonly target: RequestTarget;
  readonly offset: number;
  /** Items of the page before. */
  readonly former?: readonly unknown[] | undefined;
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
  const { readAhead = false, items = unwrapped<T>, next, query, limit: _limit, offset: _offset, ...others } = options;
  const limit = options.limit ?? numberIn(query, 'limit');
  const offset = options.offset ?? numberIn(query, 'offset');
  if (limit !== undefined && (!Number.isSafeInteger(limit) || limit < 1)) {
    throw new TypeError('limit: expected a positive integer');
  }
  if (offset !== undefined && (!Number.isSafeInteger(offset) || offset < 0)) {
    throw new TypeError('offset: expected an integer, 0 or more');
  }
  if (typeof items !== 'function') throw new TypeError('items: expected a function');
  if (next !== undefined && typeof next !== 'function') throw new TypeError('next: expected a function');
  const defaults = context.headers.parsed;
  const checkedPath = apiPath(path);
  requestTo({ path: checkedPath, query: queryString(query) }, 'GET', others, defaults);
  const follow = next === undefined ? byOffset(limit ?? DEFAULT_LIMIT) : byNext(next);
  const size = next === undefined ? (limit ?? DEFAULT_LIMIT) : limit;
  const start = next === undefined ? { offset: offset ?? 0 } : { offset };
  return iterate(getPage, context, { target: targetWith(start), offset: offset ?? 0 }, readAhead, options.signal);

  async function getPage({ target, offset: at, former }: Position, signal: AbortSignal): Promise<Page<T>> {
    const response = await get(requestTo(target, 'GET', { ...others, signal }, defaults));
    const list: unknown = items(response.data);
    if (!Array.isArray(list))
      throw new TypeError('items: expected an array; return [...list] for a Set or an iterator');
    return follow({ response, list, target, offset: at, former });
  }

  function targetWith(parameters: Query | URLSearchParams): RequestTarget {
    const common = merged(query, { limit: size });
    return { path: checkedPath, query: queryString(merged(common, parameters)) };
  }

  /** Returns how a page leads to the next one by its offset. A list that ignores the offset must not go on for ever. */
  function byOffset(full: number): (page: FoundPage<T>) => Promise<Page<T>> {
    return async ({ response: { data, headers }, list, offset: at, former }) => {
      if (former !== undefined && list.length > 0 && (await isSamePage(former, list))) {
        // It ignores the limit too: the first page was the whole list.
        if (list.length > full) return { items: [], next: undefined };
        const reason =
          'the list ignores the parameter `offset`: a page is the same as the one before. Give the option `next`.';
        throw unusableResponse(reason, { data, headers, method: 'GET', path });
      }
      // The service may return fewer at once than requested, and say so.
      const own = field(field(data, 'pagination'), 'limit');
      const received = typeof own === 'number' && own >= 1 ? Math.min(own, full) : full;
      if (list.length < received) return { items: list, next: undefined };
      const nextOffset = at + list.length;
      return {
        items: list,
        next: { target: targetWith({ offset: nextOffset }), offset: nextOffset, former: list },
      };
    };
  }

  /** Returns how a page leads to the next one by the caller's `next`. */
  function byNext(read: NonNullable<typeof next>): (page: FoundPage<T>) => Page<T> {
    const seen = new Set<string>();
    return ({ response, list, target }) => {
      seen.add(JSON.stringify(target));
      const where = read(response.data, response);
      if (where === undefined || where === null || where === '') return { items: list, next: undefined };
      const isParameters = typeof where === 'object' && !(where instanceof URL);
      const found = isParameters
        ? targetWith(where)
        : targetOf(String(where).startsWith('?') ? `${path}${where}` : where);
      if (seen.has(JSON.stringify(found))) {
        const reason = 'the list leads back to a page that was read: `next` returned it again.';
        throw unusableResponse(reason, { data: response.data, headers: response.headers, method: 'GET', path });
      }
      return { items: list, next: { target: found, offset: 0 } };
    };
  }

  /** Returns the items of `{ data: [{ data }] }`. */
  function unwrapped<I>(page: unknown): readonly I[] {
    const list = field(page, 'data');
    if (Array.isArray(list) && list.every((entry) => typeof entry === 'object' && entry !== null && 'data' in entry)) {
      return list.map((entry) => entry.data);
    }
    const reason = 'the body is not a page of the shape { data: [{ data }] }; give the option `items` for another one.';
    throw unusableResponse(reason, { data: page, headers: {}, method: 'GET', path });
  }
}

/** A page as it was received. */
interface FoundPage<T> extends Position {
  readonly response: ApiResponse;
  readonly list: readonly T[];
}

async function* iterate<T>(
  getPage: (position: Position, signal: AbortSignal) => Promise<Page<T>>,
  { deadlines }: ApiContext,
  start: Position,
  readAhead: boolean,
  signal: AbortSignal | undefined,
): AsyncGenerator<T, void, undefined> {
  // Created when the first item is requested: an iterator that is never used must not hold the caller's signal.
  const limit = new CallLimit(deadlines, Infinity, signal);
  let pending = getPage(start, limit.signal);
  try {
    for (;;) {
      const { items, next } = await pending;
      const ahead = readAhead && next !== undefined ? getPage(next, limit.signal) : undefined;
      // Reported when its turn comes, or not at all if the reader leaves before.
      ahead?.catch(() => {});
      yield* items;
      if (next === undefined) return;
      pending = ahead ?? getPage(next, limit.signal);
    }
  } finally {
    limit.abort();
  }
}

function numberIn(query: RequestOptions['query'], name: string): number | undefined {
  const value = query instanceof URLSearchParams ? query.get(name) : field(query, name);
  return value === undefined || value === null ? undefined : Number(value);
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

/** Returns true if two pages hold the same items, by their `id` if they have one. */
async function isSamePage(one: readonly unknown[], other: readonly unknown[]): Promise<boolean> {
  const { isDeepStrictEqual } = await import('node:util');
  const keyOf = (item: unknown) => field(item, 'id') ?? item;
  return one.length === other.length && one.every((item, index) => isDeepStrictEqual(keyOf(item), keyOf(other[index])));
}
