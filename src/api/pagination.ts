import type { Deadlines } from '../http/deadlines.js';
import { CallLimit } from './call-limits.js';
import { callRequest, type RequestOptions } from './call-options.js';
import { unusableAnswer } from './error-message.js';
import { field } from './field.js';
import type { Query } from './query.js';

/** Options of `paginate`; those of a call hold for each page, `timeout` among them. */
export interface PaginateOptions<T = unknown> extends Omit<RequestOptions, 'json' | 'body'> {
  /** Items asked for at once. Default: 100. The service may give less at once: its own `pagination.limit` is heeded. */
  readonly limit?: number | undefined;
  /** Items left out at the start. Default: 0. */
  readonly offset?: number | undefined;
  /** Asks for the next page while the items of one are worked on; two pages are in memory then. Default: `false`. */
  readonly readAhead?: boolean | undefined;
  /** All items of a page, for pages that are not `{ data: [{ data }] }`. It must leave none out: fewer than `limit` end the list. */
  readonly items?: ((page: unknown) => readonly T[]) | undefined;
}

/** One page of a list. */
interface Page<T> {
  readonly items: readonly T[];
  readonly last: boolean;
}

type GetPage = (options: RequestOptions) => Promise<unknown>;

const DEFAULT_LIMIT = 100;

/**
 * The items of a list, page by page.
 *
 * @param get Gets one page
 * @throws TypeError for wrong options
 */
export function paginate<T>(
  get: GetPage,
  deadlines: Deadlines,
  path: string,
  options: PaginateOptions<T>,
): AsyncIterableIterator<T> {
  const {
    limit = numberIn(options.query, 'limit') ?? DEFAULT_LIMIT,
    offset = numberIn(options.query, 'offset') ?? 0,
    readAhead = false,
    items = unwrapped(path),
    query,
    ...others
  } = options;
  if (!Number.isSafeInteger(limit) || limit < 1) throw new TypeError('limit: expected a positive integer');
  if (!Number.isSafeInteger(offset) || offset < 0) throw new TypeError('offset: expected an integer, 0 or more');
  if (typeof items !== 'function') throw new TypeError('items: expected a function');
  callRequest('GET', path, { ...others, query }, false);
  return iterate(getPage, deadlines, { offset, readAhead, signal: options.signal });

  async function getPage(start: number, signal: AbortSignal): Promise<Page<T>> {
    const page = await get({ ...others, query: pageQuery(query, limit, start), signal });
    const list = items(page);
    return { items: list, last: list.length < pageSize(page, limit) };
  }
}

interface Walk {
  readonly offset: number;
  readonly readAhead: boolean;
  readonly signal: AbortSignal | undefined;
}

async function* iterate<T>(
  getPage: (start: number, signal: AbortSignal) => Promise<Page<T>>,
  deadlines: Deadlines,
  { offset, readAhead, signal }: Walk,
): AsyncGenerator<T, void, undefined> {
  // Made when the first item is asked for: an iterator that is never used must not hold on to the caller's signal.
  const limit = new CallLimit(deadlines, Infinity, signal);
  let start = offset;
  let ahead: Promise<Page<T>> | undefined;
  try {
    for (;;) {
      const page = await (ahead ?? getPage(start, limit.signal));
      start += page.items.length;
      ahead = readAhead && !page.last ? getPage(start, limit.signal) : undefined;
      // Told when its turn comes, or not at all if the reader leaves before.
      ahead?.catch(() => {});
      for (const item of page.items) yield item;
      if (page.last) return;
    }
  } finally {
    limit.abort();
  }
}

/** What the query says where the option of that name does not. */
function numberIn(query: RequestOptions['query'], name: string): number | undefined {
  const value = query instanceof URLSearchParams ? query.get(name) : query?.[name];
  return value === undefined || value === null ? undefined : Number(value);
}

function pageQuery(query: RequestOptions['query'], limit: number, offset: number): Query | URLSearchParams {
  if (!(query instanceof URLSearchParams)) return { ...query, limit, offset };
  const parameters = new URLSearchParams(query);
  parameters.set('limit', String(limit));
  parameters.set('offset', String(offset));
  return parameters;
}

/** What a full page holds: less than asked for, where the service says that it gives no more at once. */
function pageSize(page: unknown, limit: number): number {
  const own = field(field(page, 'pagination'), 'limit');
  return typeof own === 'number' && own >= 1 ? Math.min(own, limit) : limit;
}

/** `{ data: [{ data }] }` without its wrapping. */
function unwrapped<T>(path: string): (page: unknown) => readonly T[] {
  return (page) => {
    const list = field(page, 'data');
    if (!Array.isArray(list)) {
      const reason = 'the answer is no page of the shape { data: [{ data }] }; give the option `items` for another.';
      throw unusableAnswer(reason, { data: page, headers: {}, method: 'GET', path });
    }
    return list.map((entry: unknown) => field(entry, 'data') as T);
  };
}
