import { type Optional, readOptions, withDefault, withMethods } from '../checks.js';
import { ConfigurationError } from '../errors.js';
import type { EndedGrant, Grant } from '../grants/grant.js';
import { type GrantSummary, summaryOf } from '../grants/grant.js';
import type { GrantManager } from '../refresh/grant-manager.js';
import type { StoreAccess } from '../stores/store-access.js';
import { abortable, pause } from '../waiting.js';

/** Timeout of one step of a list, in milliseconds. */
const LIST_MS = 30_000;
/** Maximum number of concurrent reads of listed grants. */
const LISTED_AT_ONCE = 100;
/** Pauses before retries of a failed read, in milliseconds: one slow read must not end a list of a million. */
const READ_AGAIN_MS = [500, 2_000];

/** A grant, ended or not, and its id. */
type ListedGrant = readonly [grantId: string, grant: Grant | EndedGrant];

/** Reads an AbortSignal. */
export const abortSignal: Optional<AbortSignal | undefined> = withDefault(
  undefined,
  withMethods('an AbortSignal', ['throwIfAborted', 'addEventListener']),
);

/** Reads the options of `strategy.grants`. @throws ConfigurationError that names the wrong one */
export function readListOptions(options: unknown): { readonly signal: AbortSignal | undefined } {
  return readOptions('grants', options, { signal: abortSignal });
}

/**
 * Yields the ids of a store's records that begin with a prefix.
 *
 * @throws ConfigurationError with the code ERR_NO_LIST if the store cannot list; TokenStoreError if it fails; the signal's reason
 */
export async function* storeIds(access: StoreAccess, prefix: string, signal?: AbortSignal): AsyncGenerator<string> {
  const ids = access.list(prefix)?.[Symbol.asyncIterator]();
  if (!ids)
    throw new ConfigurationError(
      'tokenStore: expected a store with the method list, such as redisTokenStore(…) or postgresTokenStore(…): this one cannot list its grants',
      { option: 'tokenStore', code: 'ERR_NO_LIST' },
    );
  try {
    for (;;) {
      signal?.throwIfAborted();
      const { done, value } = await access.use(() => ids.next(), 'list', LIST_MS);
      if (done) return;
      if (value.startsWith(prefix)) yield value;
    }
  } finally {
    // Not awaited, since it may hang after a failure.
    void ids.return?.()?.catch(() => undefined);
  }
}

/** Yields items in pages. */
export async function* inPages<T>(items: AsyncIterable<T>, size: number): AsyncGenerator<readonly T[]> {
  let page: T[] = [];
  for await (const item of items) {
    page.push(item);
    if (page.length < size) continue;
    yield page;
    page = [];
    // A store that answers at once (SQLite, memory) would block the event loop for minutes.
    await new Promise((resolve) => setImmediate(resolve));
  }
  yield page;
}

/** Yields each grant of a strategy, ended ones included. Holds one page. @throws like {@link storeIds}, once the store fails for seconds */
export async function* allGrants(
  manager: Pick<GrantManager, 'access' | 'repository'>,
  signal?: AbortSignal,
): AsyncGenerator<ListedGrant> {
  const { access, repository } = manager;
  const peekWithRetry = async (id: string) => {
    for (const ms of READ_AGAIN_MS) {
      try {
        return await repository.peek(id);
      } catch {
        await pause(ms);
      }
    }
    return await repository.peek(id);
  };
  for await (const page of inPages(storeIds(access, repository.storeId(''), signal), LISTED_AT_ONCE)) {
    const reads = page.map(async (storeId): Promise<ListedGrant[]> => {
      const grantId = repository.grantId(storeId);
      const grant = grantId === undefined ? undefined : await peekWithRetry(grantId);
      return grantId === undefined || grant === undefined ? [] : [[grantId, grant]];
    });
    yield* (await abortable(Promise.all(reads), signal)).flat();
  }
}

/** Yields a summary of each grant. @throws like {@link allGrants} */
export async function* grantList(manager: GrantManager, signal?: AbortSignal): AsyncGenerator<GrantSummary, void> {
  for await (const [grantId, grant] of allGrants(manager, signal)) yield summaryOf(grantId, grant, manager.clock());
}
