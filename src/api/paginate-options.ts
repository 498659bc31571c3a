import type { RequestOptions } from './call-options.js';
import type { Query } from './request-target.js';
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

/** What `next` returns: where the next page is; `undefined` or `false` after the last one. */
export type NextPage = string | URL | Query | URLSearchParams | false | undefined;
