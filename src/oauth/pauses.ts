import { remainingMs } from '../clock.js';
import { cloneError, ServiceUnavailableError, TokenError, TokenResponseError } from '../errors.js';
import { responseFactsOf } from './token-response.js';

/**
 * Why something is not tried now:
 * - `asked`: the service asked all grants for a pause (`Retry-After`, RFC 9110, 10.2.3); no answer ends it
 * - `failed`: a token request got no tokens; for all grants, if several in a row got no answer
 * - `client`: the service does not accept the client. Short, so that a corrected secret is soon noticed
 * - `ahead`: a refresh that nothing waits for failed, while the token still serves
 * - `renewed`: the API refused a token that had just been renewed
 */
export type PauseKind = 'asked' | 'failed' | 'client' | 'ahead' | 'renewed';

interface Pause {
  /** Number of failures in a row. */
  readonly failures: number;
  readonly ms: number;
  /** Epoch milliseconds. */
  readonly until: number;
  /** What callers get during the pause; `undefined` for a ServiceUnavailableError. */
  readonly error: Error | undefined;
  /** True if it ended, and one request asks the service now: see {@link Pauses.errorBeforeRequest}. */
  readonly isProbed?: boolean;
}

/** The first pause of each kind, and the longest, in milliseconds. It doubles with each failure. */
const LIMITS: Readonly<Record<PauseKind, { readonly firstMs: number; readonly maxMs: number }>> = {
  asked: { firstMs: 1_000, maxMs: 30_000 },
  failed: { firstMs: 1_000, maxMs: 30_000 },
  client: { firstMs: 250, maxMs: 1_500 },
  ahead: { firstMs: 1_000, maxMs: 30_000 },
  renewed: { firstMs: 30_000, maxMs: 600_000 },
};

/** The longest pause that a service can ask for, in milliseconds. It counts for one grant. */
const MAX_ASKED_MS = 60 * 60 * 1000;

/** Largest number of pauses. The oldest is dropped beyond it, which costs one more try. */
const MAX_PAUSES = 10_000;

/** Number of grants whose requests must fail, with no answer in between, before the endpoint counts as down for all. */
const DOWN_AFTER_GRANTS = 5;

/** Stands for all grants. No grant has an empty id. */
const ALL = '';

/** What a token request says of others. */
interface RequestFacts {
  /** False for a request of the application: it says nothing of other grants. */
  readonly countsForAll: boolean;
  /** For how long the access token still serves, in milliseconds: a refusal may mean that it is too early for a refresh. */
  readonly goodMs?: number;
}

/** Decides what is not tried now, and for how long: for one grant, or for all grants of a strategy. */
export class Pauses {
  readonly #clock: () => number;
  readonly #pauses = new Map<string, Pause>();
  /** Grants that failed since the endpoint last answered, up to the number that counts. */
  readonly #failed = new Set<string>();
  /** The grant whose client was refused last, if no request succeeded since. */
  #refusedId: string | undefined;

  /** @param clock Epoch milliseconds. */
  constructor(clock: () => number) {
    this.#clock = clock;
  }

  /** Returns how long a pause still lasts, in milliseconds. */
  remainingMs(kind: PauseKind, id: string): number {
    const pause = this.#pauses.get(`${kind} ${id}`);
    return pause === undefined ? 0 : remainingMs(pause.until, this.#clock(), pause.ms);
  }

  /** Returns how long no token request of any grant is sent, in milliseconds. */
  get forAllMs(): number {
    return Math.max(...(['asked', 'failed', 'client'] as const).map((kind) => this.remainingMs(kind, ALL)));
  }

  /** Returns how long no token request of the grant is sent, in milliseconds. */
  beforeRequestMs(id: string): number {
    return Math.max(this.forAllMs, this.remainingMs('failed', id), this.remainingMs('client', id));
  }

  /** Returns the error for callers while no token request of the grant is sent; else `undefined`. */
  error(id: string): Error | undefined {
    const leftMs = this.#pauses.size === 0 ? 0 : this.beforeRequestMs(id);
    if (leftMs === 0) return undefined;
    for (const key of [`client ${ALL}`, `failed ${id}`, `client ${id}`]) {
      const pause = this.#pauses.get(key);
      if (pause?.error && remainingMs(pause.until, this.#clock(), pause.ms) > 0)
        return cloneError(pause.error) as Error;
    }
    const message = 'The token endpoint has just failed; it is tried again later. The grant is kept.';
    return new ServiceUnavailableError(message, { retryAfter: leftMs / 1000 });
  }

  /**
   * Like {@link error}, for a caller that sends the request if there is none: after a pause because of the client, one
   * request asks the service, and the others wait for its answer for as long as the pause was.
   */
  errorBeforeRequest(id: string): Error | undefined {
    const error = this.error(id);
    const pause = this.#pauses.get(`client ${ALL}`);
    if (!error && pause)
      this.#pauses.set(`client ${ALL}`, { ...pause, until: this.#clock() + pause.ms, isProbed: true });
    return error;
  }

  /**
   * Begins a pause, or the next, longer one, and returns its length in milliseconds. Failures during a pause do not make it
   * longer.
   *
   * @param askedMs What the service asked for; counts from the first length of the kind on.
   * @param error What callers get during the pause.
   */
  begin(kind: PauseKind, id: string, askedMs?: number, error?: Error): number {
    const { firstMs, maxMs } = LIMITS[kind];
    const now = this.#clock();
    for (const [key, { ms, until }] of this.#pauses) {
      if (Math.abs(now - until) <= ms + maxMs) break;
      this.#pauses.delete(key);
    }
    const key = `${kind} ${id}`;
    const { failures = 0, isProbed = false } = this.#pauses.get(key) ?? {};
    const leftMs = isProbed ? 0 : this.remainingMs(kind, id);
    const ownMs = leftMs || Math.min(firstMs * 2 ** Math.min(failures, 10), maxMs);
    const ms = askedMs === undefined ? ownMs : Math.max(askedMs, leftMs || firstMs);
    this.#pauses.delete(key);
    this.#pauses.set(key, { failures: leftMs > 0 ? failures : failures + 1, ms, until: now + ms, error });
    const [oldest = key] = this.#pauses.keys();
    if (this.#pauses.size > MAX_PAUSES) this.#pauses.delete(oldest);
    return ms;
  }

  /** Ends a pause. The next one is a first one. */
  end(kind: PauseKind, id: string): void {
    this.#pauses.delete(`${kind} ${id}`);
  }

  /** Forgets a grant that a login replaces or a logout deletes. */
  forget(id: string): void {
    for (const kind of ['failed', 'client', 'ahead', 'renewed'] as const) this.end(kind, id);
  }

  /** Joins the pause of another process. @param until Epoch milliseconds. One that no pause reaches comes from a clock that differs. */
  join(id: string, until: number): void {
    const leftMs = remainingMs(until, this.#clock(), MAX_ASKED_MS);
    if (leftMs > 0) this.begin('failed', id, leftMs);
  }

  /** Records that a request of the grant was answered: with tokens, or by the end of the grant. */
  succeeded(id: string, { countsForAll }: RequestFacts): void {
    for (const kind of ['failed', 'client', 'ahead'] as const) this.end(kind, id);
    if (!countsForAll) return;
    this.#answered();
    this.#acceptedClient();
  }

  /**
   * Records a token request that got no tokens, and begins the pauses that follow from it. Returns the error to throw: the
   * same, or with the time after which a new try makes sense.
   */
  failed(id: string, error: unknown, { countsForAll, goodMs = 0 }: RequestFacts): unknown {
    if (error instanceof ServiceUnavailableError) return this.#unanswered(id, error, countsForAll);
    if (!(error instanceof TokenError || error instanceof TokenResponseError)) return error;
    if (countsForAll) this.#answered();
    if (error instanceof TokenError && error.error === 'invalid_client') {
      this.begin('client', id, undefined, error);
      if (countsForAll) this.#refusedClient(id, error);
      return error;
    }
    const { retryAfterMs: askedMs } = responseFactsOf(error);
    if (goodMs > 0) this.begin('ahead', id, goodMs);
    else this.begin('failed', id, askedMs === undefined ? undefined : Math.min(askedMs, MAX_ASKED_MS), error);
    // Any other refusal says that the client is accepted; the page of another server, such as a proxy, says nothing.
    if (countsForAll && error instanceof TokenError) this.#acceptedClient();
    return error;
  }

  /** Records what the exchange of a login's code got. A right secret ends the pause of the client, a wrong one begins it. */
  exchanged(error?: unknown): void {
    if (error === undefined) this.#acceptedClient();
    else if (error instanceof TokenError && error.error === 'invalid_client') this.#refusedClient(ALL, error);
  }

  /** One grant may be at fault; two in a row, or a code, are not. */
  #refusedClient(id: string, error: TokenError): void {
    const isOfOne = this.#refusedId === undefined ? id !== ALL : id === this.#refusedId;
    this.#refusedId ??= id;
    if (!isOfOne || this.#pauses.has(`client ${ALL}`)) this.begin('client', ALL, undefined, error);
  }

  #unanswered(id: string, failure: ServiceUnavailableError, countsForAll: boolean): ServiceUnavailableError {
    const askedMs = failure.retryAfter === undefined ? undefined : Math.min(failure.retryAfter * 1000, MAX_ASKED_MS);
    const ms = this.begin('failed', id, askedMs);
    if (countsForAll) {
      if (this.#failed.size < DOWN_AFTER_GRANTS) this.#failed.add(id);
      // Another grant asks again before an hour is over: the service may mean this one alone.
      if (askedMs !== undefined) this.begin('asked', ALL, Math.min(askedMs, LIMITS.asked.maxMs));
      else if (this.#failed.size >= DOWN_AFTER_GRANTS) this.begin('failed', ALL);
    }
    const { message, code, cause } = failure;
    return new ServiceUnavailableError(message, { code, cause, retryAfter: ms / 1000 });
  }

  #answered(): void {
    this.#failed.clear();
    this.end('failed', ALL);
  }

  #acceptedClient(): void {
    if (this.#refusedId === undefined) return;
    this.#refusedId = undefined;
    for (const key of this.#pauses.keys()) if (key.startsWith('client ')) this.#pauses.delete(key);
  }
}
