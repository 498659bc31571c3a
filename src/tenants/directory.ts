import { isDeepStrictEqual } from 'node:util';
import { kindOf, optionError } from '../checks.js';
import { ConfigurationError } from '../errors.js';
import type { Strategy } from '../strategy/strategy.js';
import { withTimeout } from '../waiting.js';
import { tenantUnavailable, unknownTenant } from './tenant-error.js';

/** Options of a {@link Directory}. */
export interface DirectoryOptions {
  /** Returns the options of a tenant, or nothing for an unknown one. */
  readonly resolve: (tenant: string) => unknown;
  /** Creates the strategy of a tenant. */
  readonly create: (tenant: string, options: object) => Promise<Strategy>;
  /** Called with a strategy that is not handed out again. */
  readonly retire: (strategy: Strategy) => void;
  /** Most tenants that are kept ready. */
  readonly max: number;
  /** How long one is ready before `resolve` is asked again, in milliseconds. */
  readonly ttlMs: number;
  /** How long `resolve` may take, in milliseconds. */
  readonly timeoutMs: number;
  /** Epoch milliseconds. */
  readonly clock: () => number;
}

interface Ready {
  readonly strategy: Strategy;
  readonly options: object;
  /** Epoch milliseconds. */
  until: number;
  /** True once `resolve` has failed: the next failure makes the tenant unavailable. */
  isInGrace: boolean;
}

/** The strategies of the tenants that are in use, the least recently used first. */
export class Directory {
  readonly #options: DirectoryOptions;
  readonly #ready = new Map<string, Ready>();
  readonly #asking = new Map<string, Promise<Strategy>>();

  constructor(options: DirectoryOptions) {
    this.#options = options;
  }

  /** The strategies that are ready. */
  get strategies(): readonly Strategy[] {
    return [...this.#ready.values()].map(({ strategy }) => strategy);
  }

  /**
   * Returns the strategy of a tenant. Synchronous if it is ready; concurrent callers share one call of `resolve`.
   *
   * @throws TenantError for an unknown tenant; ServiceUnavailableError if `resolve` fails; ConfigurationError for what it returns
   */
  get(tenant: string): Strategy | Promise<Strategy> {
    const ready = this.#ready.get(tenant);
    if (ready !== undefined && this.#options.clock() < ready.until) {
      // Last in the order of use.
      this.#ready.delete(tenant);
      this.#ready.set(tenant, ready);
      return ready.strategy;
    }
    return this.#asking.get(tenant) ?? this.#ask(tenant);
  }

  /** Makes the next use call `resolve` again, and ends the grace period after a failed lookup. */
  forget(tenant: string): void {
    this.#asking.delete(tenant);
    const ready = this.#ready.get(tenant);
    if (ready) Object.assign(ready, { until: 0, isInGrace: true });
  }

  #ask(tenant: string): Promise<Strategy> {
    const isCurrent = () => this.#asking.get(tenant) === asking;
    const asking: Promise<Strategy> = this.#resolved(tenant, isCurrent).finally(() => {
      if (isCurrent()) this.#asking.delete(tenant);
    });
    this.#asking.set(tenant, asking);
    return asking;
  }

  async #resolved(tenant: string, isCurrent: () => boolean): Promise<Strategy> {
    const { resolve, create, timeoutMs, ttlMs, clock } = this.#options;
    let options: unknown;
    try {
      const answer = Promise.resolve(tenant).then(resolve);
      options = await withTimeout(answer, timeoutMs, () => new Error('resolve took too long'));
    } catch (error) {
      const ready = this.#ready.get(tenant);
      if (isCurrent() && ready?.isInGrace) this.#drop(tenant);
      if (!isCurrent() || !ready || ready.isInGrace) throw tenantUnavailable(error);
      Object.assign(ready, { until: clock() + ttlMs, isInGrace: true });
      return ready.strategy;
    }
    // `forget` was called during the lookup, so the answer may be stale.
    if (!isCurrent()) return await this.get(tenant);
    if (options === undefined || options === null) {
      this.#drop(tenant);
      throw unknownTenant();
    }
    if (typeof options !== 'object' || Array.isArray(options))
      throw optionError('resolve', `expected an object of options for ${tenant}, or undefined, got ${kindOf(options)}`);
    const known = this.#ready.get(tenant);
    if (known && isDeepStrictEqual(known.options, snapshot(options))) {
      Object.assign(known, { until: clock() + ttlMs, isInGrace: false });
      return known.strategy;
    }
    const strategy = await create(tenant, options).catch((error: unknown) => {
      if (!(error instanceof ConfigurationError)) throw error;
      const message = `resolve returned wrong options for ${tenant}: ${error.message}`;
      throw new ConfigurationError(message, { option: error.option ?? 'resolve', code: error.code });
    });
    if (!isCurrent()) {
      this.#options.retire(strategy);
      return await this.get(tenant);
    }
    this.#drop(tenant);
    this.#ready.set(tenant, { strategy, options: snapshot(options), until: clock() + ttlMs, isInGrace: false });
    for (const oldest of this.#ready.keys()) {
      if (this.#ready.size <= this.#options.max) break;
      this.#drop(oldest);
    }
    return strategy;
  }

  #drop(tenant: string): void {
    const ready = this.#ready.get(tenant);
    this.#ready.delete(tenant);
    if (ready) this.#options.retire(ready.strategy);
  }
}

/** Copies the options of a tenant: the directory may change its own object later. */
function snapshot(options: unknown): object {
  const copies = Object.entries(Object(options)).map(([name, value]) => [
    name,
    Array.isArray(value) ? [...value] : value,
  ]);
  return Object.fromEntries(copies);
}
