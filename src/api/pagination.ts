import { ofStrategy } from '../errors.js';
import type { ApiContext } from './api-context.js';
import { ApiError, field, unusableResponse } from './api-error.js';
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
  /** Pages after which a list that has not ended is an error. Default: no limit. */
  readonly maxPages?: number | undefined;
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
  /** Number of the page, from 1 on. */
  readonly number: number;
  /** The page before, until it is proven that the list heeds `offset`. */
  readonly former?: FormerPage | undefined;
}

/** A page as it was received, and its items. */
interface FormerPage {
  readonly data: unknown;
  readonly list: readonly unknown[];
}

/** Makes one call, and returns its parsed response. */
export type GetPage = (request: CallRequest) => Promise<ApiResponse>;

const DEFAULT_LIMIT = 100;

/** The page at which a list has to show that it heeds `offset`, if it has not before. */
const PROOF_PAGE = 100;

/** An offset beyond the end of any list, and within 32 bits. */
const BEYOND_THE_END = 2 ** 31 - 1;

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
  const { readAhead = false, items = unwrapped<T>, next, query, ...others } = given;
  const limit = options.limit ?? numberIn(query, 'limit');
  const offset = options.offset ?? numberIn(query, 'offset');
  if (limit !== undefined && (!Number.isSafeInteger(limit) || limit < 1)) {
    throw new TypeError('limit: expected a positive integer');
  }
  if (offset !== undefined && (!Number.isSafeInteger(offset) || offset < 0)) {
    throw new TypeError('offset: expected an integer, 0 or more');
  }
  if (maxPages !== undefined && (!Number.isSafeInteger(maxPages) || maxPages < 1)) {
    throw new TypeError('maxPages: expected a positive integer');
  }
  if (typeof items !== 'function') throw new TypeError('items: expected a function');
  if (next !== undefined && typeof next !== 'function') throw new TypeError('next: expected a function');
  const defaults = context.headers.parsed;
  const checkedPath = apiPath(path);
  requestTo({ path: checkedPath, query: queryString(query) }, 'GET', others, defaults);
  const follow = next === undefined ? byOffset(limit ?? DEFAULT_LIMIT) : byNext(next);
  const size = next === undefined ? (limit ?? DEFAULT_LIMIT) : limit;
  const start = next === undefined ? { offset: offset ?? 0 } : { offset };
  return iterate(
    getPage,
    context,
    { target: targetWith(start), offset: offset ?? 0, number: 1 },
    readAhead,
    options.signal,
  );

  async function getPage(position: Position, signal: AbortSignal): Promise<Page<T>> {
    const response = await get(requestTo(position.target, 'GET', { ...others, signal }, defaults));
    const list: unknown = items(response.data);
    if (!Array.isArray(list))
      throw new TypeError('items: expected an array; return [...list] for a Set or an iterator');
    const page = await follow({ response, list, position, signal });
    if (page.next === undefined || maxPages === undefined || position.number < maxPages) return page;
    throw unusable(response, `the list has not ended after ${maxPages} pages, the option \`maxPages\`.`);
  }

  function unusable({ data, headers }: Pick<ApiResponse, 'data' | 'headers'>, reason: string): Error {
    return ofStrategy(unusableResponse(reason, { data, headers, method: 'GET', path }), context.strategyName);
  }

  function targetWith(parameters: Query | URLSearchParams): RequestTarget {
    const common = merged(query, { limit: size });
    return { path: checkedPath, query: queryString(merged(common, parameters)) };
  }

  /** Returns how a page leads to the next one by its offset. A list that ignores the offset must not go on for ever. */
  function byOffset(full: number): (page: FoundPage<T>) => Promise<Page<T>> {
    return async ({ response, list, position, signal }) => {
      const { offset: at, number, former } = position;
      const { data } = response;
      const pagination = field(data, 'pagination');
      const own = { limit: numberIn(pagination, 'limit'), offset: numberIn(pagination, 'offset') };
      // The service may return fewer at once than requested, and say so.
      const received = own.limit !== undefined && own.limit >= 1 ? Math.min(own.limit, full) : full;
      const isFull = list.length >= received;
      // Without a former page it is the first one, or it is proven that the list heeds the offset.
      const isUnproven = number === 1 || former !== undefined;
      const isConfirmed = own.offset === at;
      const isAgain = isFull && !isConfirmed && former !== undefined && (await isAlike(former, { data, list }));
      const isTooLong = list.length > full && former !== undefined;
      const isBehind = own.offset !== undefined && own.offset < at;
      const isSuspect = isBehind || isAgain || (isTooLong && !isConfirmed) || (isFull && number === PROOF_PAGE);
      const isProven = isUnproven && isSuspect && !(isAgain && isTooLong) && !(await hasItems(BEYOND_THE_END, signal));
      if (isUnproven && isSuspect && !isProven) {
        // It ignores the limit too: the first page was the whole list.
        if (isTooLong) return { items: [], next: undefined };
        throw unusable(response, `the list ignores the parameter \`offset\` (${at}). Give the option \`next\`.`);
      }
      if (!isFull) return { items: list, next: undefined };
      const offset = at + list.length;
      const known = isUnproven && !isProven ? { former: { data, list } } : {};
      return { items: list, next: { target: targetWith({ offset }), offset, number: number + 1, ...known } };
    };
  }

  /** Returns true if the list gives items for an offset. A refusal shows that it reads the offset. */
  async function hasItems(offset: number, signal: AbortSignal): Promise<boolean> {
    try {
      const { data } = await get(requestTo(targetWith({ offset }), 'GET', { ...others, signal }, defaults));
      return items(data).length > 0;
    } catch (error) {
      if (error instanceof ApiError && error.status >= 400 && error.status < 500) return false;
      throw error;
    }
  }

  /** Returns how a page leads to the next one by the caller's `next`. */
  function byNext(read: NonNullable<typeof next>): (page: FoundPage<T>) => Page<T> {
    const seen = new Set<string>();
    return ({ response, list, position: { target, number } }) => {
      seen.add(JSON.stringify(target));
      const where = read(response.data, response);
      if (where === undefined || where === null || where === '') return { items: list, next: undefined };
      const isParameters = typeof where === 'object' && !(where instanceof URL);
      const found = isParameters
        ? targetWith(where)
        : targetOf(String(where).startsWith('?') ? `${path}${where}` : where);
      if (seen.has(JSON.stringify(found))) {
        throw unusable(response, 'the list leads back to a page that was read: `next` returned it again.');
      }
      return { items: list, next: { target: found, offset: 0, number: number + 1 } };
    };
  }

  /** Returns the items of `{ data: [{ data }] }`. */
  function unwrapped<I>(page: unknown): readonly I[] {
    const list = field(page, 'data');
    if (Array.isArray(list) && list.every((entry) => typeof entry === 'object' && entry !== null && 'data' in entry)) {
      return list.map((entry) => entry.data);
    }
    const reason = 'the body is not a page of the shape { data: [{ data }] }; give the option `items` for another one.';
    throw unusable({ data: page, headers: {} }, reason);
  }
}

/** A page as it was received. */
interface FoundPage<T> {
  readonly response: ApiResponse;
  readonly list: readonly T[];
  readonly position: Position;
  readonly signal: AbortSignal;
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

/** Returns a number of a query, or of a page: some services have it as a text. `NaN` for anything else. */
function numberIn(from: unknown, name: string): number | undefined {
  const value = from instanceof URLSearchParams ? from.get(name) : field(from, name);
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

/**
 * Returns true if two pages may be the same one: they are equal as a whole, or their items have the same ids, all of them
 * distinct. Pages of an honest list may look like that too.
 */
async function isAlike(one: FormerPage, other: FormerPage): Promise<boolean> {
  const { isDeepStrictEqual } = await import('node:util');
  if (isDeepStrictEqual(one.data, other.data)) return true;
  const ids = one.list.map((item) => field(item, 'id'));
  const areKeys = new Set(ids).size === ids.length && !ids.includes(undefined);
  return (
    areKeys &&
    isDeepStrictEqual(
      ids,
      other.list.map((item) => field(item, 'id')),
    )
  );
}
