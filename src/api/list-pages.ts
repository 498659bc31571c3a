import { ApiError, field } from './api-error.js';
import { type Query, type RequestTarget, targetOf } from './request-target.js';
import type { ApiResponse } from './response.js';

/** What `next` returns: where the next page is; `undefined` or `false` after the last one. */
export type NextPage = string | URL | Query | URLSearchParams | false | undefined;

/** One page of a list. */
export interface Page<T> {
  readonly items: readonly T[];
  /** `undefined` after the last page. */
  readonly next: Position | undefined;
}

/** Where a page is. */
export interface Position {
  readonly target: RequestTarget;
  readonly offset: number;
  /** Number of the page, from 1 on. */
  readonly number: number;
}

/** A page as it was received. */
export interface FoundPage<T> {
  readonly response: ApiResponse;
  readonly items: readonly T[];
  readonly position: Position;
  readonly signal: AbortSignal;
}

/** Finds the page after another one. */
export interface PageStrategy<T> {
  follow(page: FoundPage<T>): Page<T> | Promise<Page<T>>;
}

/** What all pages of one list have in common. */
export interface List<T> {
  readonly path: string;
  /** Returns the target of the page with these parameters. */
  target(parameters: Query | URLSearchParams): RequestTarget;
  get(target: RequestTarget, signal: AbortSignal): Promise<ApiResponse>;
  /** @throws TypeError, ApiError */
  itemsOf(response: ApiResponse): readonly T[];
  /** Returns the error for a response of the list. */
  unusable(response: Pick<ApiResponse, 'data' | 'headers'>, reason: string): Error;
}

/** The page at which a list has to prove that it heeds `offset`, unless it has before. */
const PROOF_PAGE = 100;

/** An offset beyond the end of any list, and within 32 bits. */
const BEYOND_THE_END = 2 ** 31 - 1;

/** Follows a list by its offset up to the first page that is not full. A list that ignores the offset must not go on forever. */
export class OffsetPages<T> implements PageStrategy<T> {
  readonly #list: List<T>;
  readonly #limit: number;
  /** The page before, until the list has proved that it heeds the offset. */
  #former: FoundPage<T> | undefined;
  #isProven = false;

  constructor(list: List<T>, limit: number) {
    this.#list = list;
    this.#limit = limit;
  }

  async follow(page: FoundPage<T>): Promise<Page<T>> {
    const { response, items, position } = page;
    const own = field(response.data, 'pagination');
    const ownLimit = numberIn(own, 'limit');
    // The service may return fewer at once than requested, and say so.
    const isFull =
      items.length >= (ownLimit !== undefined && ownLimit >= 1 ? Math.min(ownLimit, this.#limit) : this.#limit);
    if (!this.#isProven) {
      const doubt = await this.#doubt(page, isFull, numberIn(own, 'offset'));
      // Without a doubt the list may still ignore the offset.
      if (doubt !== undefined) this.#isProven = !doubt.isCertain && !(await this.#hasItemsBeyondEnd(page.signal));
      if (doubt !== undefined && !this.#isProven) {
        // It ignores the limit too: the first page was the whole list.
        if (doubt.isWhole) return { items: [], next: undefined };
        const reason = `the list ignores the parameter \`offset\` (${position.offset}). Set the option \`next\`.`;
        throw this.#list.unusable(response, reason);
      }
      this.#former = page;
    }
    if (!isFull) return { items, next: undefined };
    const offset = position.offset + items.length;
    return { items, next: { target: this.#list.target({ offset }), offset, number: position.number + 1 } };
  }

  /** Returns why a page may be the same for all offsets; `undefined` if nothing suggests it. */
  async #doubt(
    page: FoundPage<T>,
    isFull: boolean,
    ownOffset: number | undefined,
  ): Promise<{ readonly isWhole: boolean; readonly isCertain: boolean } | undefined> {
    const { items, position } = page;
    const former = this.#former;
    const isConfirmed = ownOffset === position.offset;
    const isAgain = isFull && !isConfirmed && former !== undefined && (await isAlike(former, page));
    const isWhole = items.length > this.#limit && former !== undefined;
    const isBehind = ownOffset !== undefined && ownOffset < position.offset;
    const isDoubtful = isBehind || isAgain || (isWhole && !isConfirmed) || (isFull && position.number === PROOF_PAGE);
    return isDoubtful ? { isWhole, isCertain: isAgain && isWhole } : undefined;
  }

  /** Returns true if the list returns items for any offset. A refusal shows that it reads the offset. */
  async #hasItemsBeyondEnd(signal: AbortSignal): Promise<boolean> {
    const list = this.#list;
    try {
      return list.itemsOf(await list.get(list.target({ offset: BEYOND_THE_END }), signal)).length > 0;
    } catch (error) {
      if (error instanceof ApiError && error.status >= 400 && error.status < 500) return false;
      throw error;
    }
  }
}

/**
 * Returns true if two pages may be the same one: they are equal as a whole, or their items have the same ids, all of them
 * distinct. Pages of an honest list may look like that too.
 */
async function isAlike<T>(one: FoundPage<T>, other: FoundPage<T>): Promise<boolean> {
  const { isDeepStrictEqual } = await import('node:util');
  if (isDeepStrictEqual(one.response.data, other.response.data)) return true;
  const [ids, otherIds] = [one, other].map(({ items }) => items.map((item) => field(item, 'id')));
  const areKeys = new Set(ids).size === ids?.length && !ids.includes(undefined);
  return areKeys && isDeepStrictEqual(ids, otherIds);
}

/** Follows a list by the caller's `next`. */
export class LinkedPages<T> implements PageStrategy<T> {
  readonly #list: List<T>;
  readonly #next: (page: unknown, response: ApiResponse) => NextPage;
  readonly #seen = new Set<string>();

  constructor(list: List<T>, next: (page: unknown, response: ApiResponse) => NextPage) {
    this.#list = list;
    this.#next = next;
  }

  follow({ response, items, position }: FoundPage<T>): Page<T> {
    this.#seen.add(JSON.stringify(position.target));
    const where = this.#next(response.data, response);
    // `cursor && { cursor }` may return whatever the service sends for no cursor.
    if (where === undefined || where === null || where === false || where === '') return { items, next: undefined };
    const isParameters = typeof where === 'object' && !(where instanceof URL);
    const isQuery = String(where).startsWith('?');
    const target = isParameters ? this.#list.target(where) : targetOf(isQuery ? `${this.#list.path}${where}` : where);
    if (this.#seen.has(JSON.stringify(target)))
      throw this.#list.unusable(response, 'the list leads back to a page that was read: `next` returned it again.');
    return { items, next: { target, offset: 0, number: position.number + 1 } };
  }
}

/** Returns a number of a query, or of a page, where it may be text. `NaN` for anything else. */
export function numberIn(from: unknown, name: string): number | undefined {
  const value = from instanceof URLSearchParams ? from.get(name) : field(from, name);
  return value === undefined || value === null ? undefined : Number(value);
}
