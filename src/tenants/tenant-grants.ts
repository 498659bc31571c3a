import { nameOfTenant, publicName } from '../errors.js';
import { GrantCodec, type GrantSummary, summaryOf } from '../grants/grant.js';
import { GrantRepository } from '../grants/grant-repository.js';
import { inPages, storeIds } from '../jobs/grant-list.js';
import type { Secret } from '../redaction.js';
import { StoreAccess } from '../stores/store-access.js';
import type { TokenStore } from '../stores/token-store.js';
import { abortable } from '../waiting.js';
import type { TenantLogin } from './tenant-session.js';

/** What is known of a grant at a tenant. */
export interface TenantGrantSummary extends GrantSummary {
  readonly tenant: string;
}

/** Options of {@link TenantGrants}. */
export interface TenantGrantsOptions {
  readonly name: string;
  readonly store: TokenStore;
  readonly encryptionKeys: readonly Secret[];
  readonly clock: () => number;
}

/** How many grants are read or deleted at once. */
const AT_ONCE = 50;

/** Time limit of a read, in milliseconds. */
const READ_MS = 5_000;

/** The grants of all tenants in the token store, for work that needs no directory. */
export class TenantGrants {
  readonly #options: TenantGrantsOptions;
  readonly #codec: GrantCodec;
  readonly #access: StoreAccess;

  constructor(options: TenantGrantsOptions) {
    this.#options = options;
    this.#codec = new GrantCodec(options.encryptionKeys);
    this.#access = new StoreAccess(options.store, () => {}, options.clock);
  }

  /**
   * Yields the ids of the grants of one tenant, or of all. Reads the rows of that tenant alone where the store lists by prefix.
   *
   * @throws ConfigurationError with the code `ERR_NO_LIST` if the store cannot list; TokenStoreError if it fails
   */
  async *ids(tenant: string | undefined, signal?: AbortSignal): AsyncGenerator<TenantLogin & { readonly id: string }> {
    const { name } = this.#options;
    const prefix = encodeURIComponent(nameOfTenant(name, tenant === undefined ? '' : `${tenant}.`));
    for await (const id of storeIds(this.#access, tenant === undefined ? prefix : `${prefix}+`, signal)) {
      const [place = '', escaped] = id.split('+', 2);
      const { tenant: found } = publicName(decodeURIComponent(place).replace(/\.$/, ''));
      if (found !== undefined && escaped !== undefined)
        yield { tenant: found, grantId: decodeURIComponent(escaped), id };
    }
  }

  /** Yields what is known of each grant of one tenant, or of all. @throws like {@link ids} */
  async *summaries(tenant: string | undefined, signal?: AbortSignal): AsyncGenerator<TenantGrantSummary> {
    const { clock } = this.#options;
    for await (const page of inPages(this.ids(tenant, signal), AT_ONCE)) {
      const reads = page.map(async ({ id, ...login }) => {
        const record = await this.#access.use((store) => store.get(id), 'get', READ_MS);
        const grant = record && (await this.#codec.decode(id, record));
        return grant ? [{ ...summaryOf(login.grantId, grant, clock()), tenant: login.tenant }] : [];
      });
      yield* (await abortable(Promise.all(reads), signal)).flat();
    }
  }

  /** Deletes a grant, and revokes nothing: for a tenant that the directory does not know. @throws TokenStoreError */
  async delete({ tenant, grantId }: TenantLogin): Promise<void> {
    const { name, store, clock } = this.#options;
    const repository = new GrantRepository({
      strategyName: `${nameOfTenant(name, tenant)}.`,
      store,
      codec: this.#codec,
      cache: undefined,
      clock,
      onUnreadable: () => {},
      onRecovery: () => {},
      onUnlockedRefresh: () => {},
    });
    await repository.remove(grantId).done;
  }

  /** Calls `remove` for each grant of a tenant, some at once. Tries all of them before it throws. */
  async deleteAll(tenant: string, remove: (login: TenantLogin) => Promise<void>): Promise<void> {
    const failures: unknown[] = [];
    for await (const page of inPages(this.ids(tenant), AT_ONCE))
      for (const result of await Promise.allSettled(page.map(remove)))
        if (result.status === 'rejected') failures.push(result.reason);
    if (failures.length > 0) throw failures[0];
  }
}
