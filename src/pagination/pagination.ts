import { isDeepStrictEqual } from 'node:util';
import { BUFFERED, callApi, responseOf } from '../api/api-call.js';
import type { ClientParts } from '../api/api-context.js';
import { ApiError, field, unusableResponse } from '../api/api-error.js';
import type { ApiResponse, PaginateOptions, Query, RequestOptions } from '../api/call-options.js';
import { apiPath, queryString, type RequestTarget, requestTo } from '../api/call-request.js';
import { result } from '../checks.js';
import { ofStrategy } from '../errors.js';
import { targetOf } from '../fetch/url-target.js';
import { TimeLimit } from '../http/deadlines.js';

/** Where a page is. */
interface Position {
  readonly target: RequestTarget;
  readonly offset: number;
  /** Number of the page, from 1 on. */
  readonly number: number;
}

/** A page as it was received. */
interface ReceivedPage<T> {
  readonly response: ApiResponse;
  readonly items: readonly T[];
  readonly position: Position;
}

/** What all pages of one list have in common. */
interface List<T> {
  readonly path: string;
  /** Returns the target of the page with these parameters. */
  target(parameters: Query | URLSearchParams): RequestTarget;
  get(target: RequestTarget): Promise<ApiResponse>;
  /** @throws TypeError, ApiError */
  itemsOf(response: ApiResponse): readonly T[];
  /** Returns the error for a response of the list. */
  unusable(response: Pick<ApiResponse, 'data' | 'headers'>, reason: string): Error;
}

/** The items of a page; `next` is `undefined` after the last one. */
interface Page<T> {
  readonly items: readonly T[];
  readonly next: Position | undefined;
}

/** Finds the page after another one. */
type Follow<T> = (page: ReceivedPage<T>) => Page<T> | Promise<Page<T>>;

const DEFAULT_LIMIT = 100;

/** The page by which a list must prove that it obeys `offset`. */
const PROOF_PAGE = 100;

/** An offset beyond the end of any list that fits into 32 bits. */
const BEYOND_THE_END = 2 ** 31 - 1;

/**
 * Yields the items of a list, page by page.
 *
 * @throws TypeError for wrong options
 */
export async function* pagesOf<T>(
  parts: ClientParts,
  path: string,
  options: PaginateOptions<T>,
): AsyncGenerator<readonly T[], void, undefined> {
  const { limit: _limit, offset: _offset, maxPages, readAhead = false, items, next, query, ...others } = options;
  const limit = options.limit ?? numberIn(query, 'limit') ?? (next === undefined ? DEFAULT_LIMIT : undefined);
  const offset = options.offset ?? numberIn(query, 'offset') ?? (next === undefined ? 0 : undefined);
  checkNumber('limit', limit, 1);
  checkNumber('offset', offset, 0);
  checkNumber('maxPages', maxPages, 1);
  if (items !== undefined && typeof items !== 'function') throw new TypeError('items: expected a function');
  if (next !== undefined && typeof next !== 'function') throw new TypeError('next: expected a function');
  const { context } = parts;
  const defaults = context.headers.parsed;
  const checkedPath = apiPath(path);
  requestTo({ path: checkedPath, query: queryString(query) }, 'GET', others, defaults);
  const common = merged(query, { limit });
  const all = new TimeLimit(context.deadlines, Infinity, options.signal);
  const list: List<T> = {
    path,
    target: (parameters) => ({ path: checkedPath, query: queryString(merged(common, parameters)) }),
    get: async (target) => {
      const request = requestTo(target, 'GET', { ...others, signal: all.signal }, defaults);
      return await callApi(parts, request, BUFFERED, responseOf);
    },
    itemsOf: (response) => {
      const found: unknown = items === undefined ? wrappedItems(response.data) : result('items', items(response.data));
      if (Array.isArray(found)) return found;
      if (items === undefined) throw list.unusable(response, WRONG_SHAPE);
      throw new TypeError('items: expected an array; return [...list] for a Set or an iterator');
    },
    unusable: ({ data, headers }, reason) =>
      ofStrategy(unusableResponse(reason, { data, headers, method: 'GET', path }), context.strategyName),
  };
  const follow = next === undefined ? byOffset(list, limit ?? DEFAULT_LIMIT) : byNext(list, next);
  const getPage = async (position: Position): Promise<Page<T>> => {
    const response = await list.get(position.target);
    const page = await follow({ response, items: list.itemsOf(response), position });
    if (page.next === undefined || maxPages === undefined || position.number < maxPages) return page;
    throw list.unusable(response, `the list has not ended after ${maxPages} pages, the option \`maxPages\`.`);
  };
  try {
    let pending = getPage({ target: list.target({ offset }), offset: offset ?? 0, number: 1 });
    for (;;) {
      const page = await pending;
      const ahead = readAhead && page.next !== undefined ? getPage(page.next) : undefined;
      // The reader gets its error with the first item of that page.
      ahead?.catch(() => {});
      yield page.items;
      if (page.next === undefined) return;
      pending = ahead ?? getPage(page.next);
    }
  } finally {
    all.abort();
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

/** Follows a list by its offset up to the first page that is not full. One that ignores the offset must not go on forever. */
function byOffset<T>(list: List<T>, limit: number): Follow<T> {
  /** The page before, until the list has proved that it obeys the offset. */
  let former: ReceivedPage<T> | undefined;
  let isProven = false;
  return async (page) => {
    const { response, items, position } = page;
    const own = field(response.data, 'pagination');
    const ownLimit = numberIn(own, 'limit');
    // The service may return fewer at once than requested, and say so.
    const isFull = items.length >= (ownLimit !== undefined && ownLimit >= 1 ? Math.min(ownLimit, limit) : limit);
    if (!isProven) {
      const ownOffset = numberIn(own, 'offset');
      const isConfirmed = ownOffset === position.offset;
      const isBehind = ownOffset !== undefined && ownOffset < position.offset;
      const isAgain = isFull && !isConfirmed && former !== undefined && isAlike(former, page);
      const isWhole = items.length > limit && former !== undefined;
      if (isBehind || isAgain || (isWhole && !isConfirmed) || (isFull && position.number === PROOF_PAGE)) {
        isProven = !(isAgain && isWhole) && !(await hasItemsBeyondEnd(list));
        // It ignores the limit too: the first page was the whole list.
        if (!isProven && isWhole) return { items: [], next: undefined };
        const reason = `the list ignores the parameter \`offset\` (${position.offset}). Set the option \`next\`.`;
        if (!isProven) throw list.unusable(response, reason);
      }
      former = page;
    }
    if (!isFull) return { items, next: undefined };
    const offset = position.offset + items.length;
    return { items, next: { target: list.target({ offset }), offset, number: position.number + 1 } };
  };
}

/**
 * Returns true if two pages may be the same: they are equal, or their items have the same distinct ids. Pages of an honest list
 * may look like that too.
 */
function isAlike<T>(one: ReceivedPage<T>, other: ReceivedPage<T>): boolean {
  if (isDeepStrictEqual(one.response.data, other.response.data)) return true;
  const [ids, otherIds] = [one, other].map(({ items }) => items.map((item) => field(item, 'id')));
  const areKeys = new Set(ids).size === ids?.length && !ids.includes(undefined);
  return areKeys && isDeepStrictEqual(ids, otherIds);
}

/** Returns true if the list has items at any offset. A refusal shows that it reads the offset. */
async function hasItemsBeyondEnd<T>(list: List<T>): Promise<boolean> {
  try {
    return list.itemsOf(await list.get(list.target({ offset: BEYOND_THE_END }))).length > 0;
  } catch (error) {
    if (error instanceof ApiError && error.status >= 400 && error.status < 500) return false;
    throw error;
  }
}

/** Follows a list by the caller's `next`. */
function byNext<T>(list: List<T>, next: NonNullable<PaginateOptions<T>['next']>): Follow<T> {
  const seen = new Set<string>();
  return ({ response, items, position }) => {
    seen.add(JSON.stringify(position.target));
    const where = result('next', next(response.data, response));
    // `cursor && { cursor }` may return whatever the service sends for no cursor.
    if (where === undefined || where === null || where === false || where === '') return { items, next: undefined };
    const isParameters = typeof where === 'object' && !(where instanceof URL);
    const isQuery = String(where).startsWith('?');
    const target = isParameters ? list.target(where) : targetOf(isQuery ? `${list.path}${where}` : where);
    if (seen.has(JSON.stringify(target)))
      throw list.unusable(response, 'the list leads back to a page that was read: `next` returned it again.');
    return { items, next: { target, offset: 0, number: position.number + 1 } };
  };
}

/** Returns a number of a query or a page, where it may be text; `NaN` for anything else. */
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
