import { remainingMs } from '../clock.js';
import { cloneError, ServiceUnavailableError, TokenError, TokenResponseError } from '../errors.js';
import { responseFactsOf } from './token-response.js';

/** The first pause of each kind, and the longest, in milliseconds. A pause doubles with each failure. */
const LIMITS = {
  /** The service asked all grants to wait (`Retry-After`, RFC 9110, 10.2.3). No answer ends it. */
  asked: { firstMs: 1_000, maxMs: 30_000 },
  /** A token request got no tokens. For all grants, if several in a row got no answer. */
  failed: { firstMs: 1_000, maxMs: 30_000 },
  /** The service rejects the client. Short, so that a corrected secret is soon noticed. */
  client: { firstMs: 250, maxMs: 1_500 },
  /** A background refresh failed while the token is still valid. */
  ahead: { firstMs: 1_000, maxMs: 30_000 },
  /** The API rejected a token that had just been renewed. */
  renewed: { firstMs: 30_000, maxMs: 600_000 },
};

/** Why something is not tried now. */
export type PauseKind = keyof typeof LIMITS;

/** The longest pause that a service can ask of one grant, in milliseconds. */
const MAX_ASKED_MS = 60 * 60 * 1000;

/** Beyond it the oldest pause is dropped, which costs one more request. */
const MAX_PAUSES = 10_000;

/** Number of grants whose requests must fail, with no answer in between, before the endpoint counts as down for all. */
const DOWN_AFTER_GRANTS = 5;

/** Stands for all grants. No grant has an empty id. */
const ALL = '';

interface Pause {
  /** Number of failures in a row. */
  readonly failures: number;
  readonly ms: number;
  /** Epoch milliseconds. */
  readonly until: number;
  /** What callers get during the pause; `undefined` for a ServiceUnavailableError. */
  readonly error: Error | undefined;
  /** True if it ended and one request asks the service now: see {@link Pauses.probe}. */
  readonly isProbed?: boolean;
}

/** Decides what is not tried now, and for how long: for one grant, or for all grants of a strategy. */
export class Pauses {
  readonly #clock: () => number;
  readonly #pauses = new Map<string, Pause>();
  /** Grants that failed since the endpoint last answered, at most {@link DOWN_AFTER_GRANTS}. */
  readonly #failed = new Set<string>();
  /** The first grant with which the client was rejected, if it was not accepted since. */
  #rejectedId: string | undefined;

  /** @param clock Epoch milliseconds. */
  constructor(clock: () => number) {
    this.#clock = clock;
  }

  /** Returns how long a pause still lasts, in milliseconds. */
  remainingMs(kind: PauseKind, id: string): number {
    const pause = this.#active(`${kind} ${id}`);
    return pause ? pause.until - this.#clock() : 0;
  }

  /** Returns how long no token request of a grant is sent, in milliseconds. @param id Default: any grant */
  beforeRequestMs(id: string = ALL): number {
    return Math.max(0, ...this.#beforeRequest(id).map(({ until }) => until - this.#clock()));
  }

  /** Returns the error for callers while no token request of the grant is sent; `undefined` if one may be sent. */
  error(id: string): Error | undefined {
    const pauses = this.#pauses.size === 0 ? [] : this.#beforeRequest(id);
    if (pauses.length === 0) return undefined;
    const known = pauses.find(({ error }) => error !== undefined);
    if (known) return cloneError(known.error) as Error;
    const message = 'The token endpoint failed moments ago, so no request was sent. The grant is kept.';
    return new ServiceUnavailableError(message, { retryAfter: this.beforeRequestMs(id) / 1000 });
  }

  /** Called before a request is sent. After a pause because of the client, it alone asks the service: the others pause again. */
  probe(): void {
    const ended = this.#pauses.get(`client ${ALL}`);
    if (ended) this.#pauses.set(`client ${ALL}`, { ...ended, until: this.#clock() + ended.ms, isProbed: true });
  }

  /**
   * Begins a pause, or the next, longer one, and returns its length in milliseconds. Failures during a pause do not
   * lengthen it.
   *
   * @param askedMs What the service asked for; at least the first length of the kind counts.
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

  /** Ends pauses of a grant. The next one is a first one. */
  end(id: string, ...kinds: readonly PauseKind[]): void {
    for (const kind of kinds) this.#pauses.delete(`${kind} ${id}`);
  }

  /** Forgets a grant that a login replaces or a logout deletes. */
  forget(id: string): void {
    this.end(id, 'failed', 'client', 'ahead', 'renewed');
  }

  /** Joins the pause of another process. @param until Epoch milliseconds. One that no pause reaches comes from a wrong clock. */
  join(id: string, until: number): void {
    const leftMs = remainingMs(until, this.#clock(), MAX_ASKED_MS);
    if (leftMs > 0) this.begin('failed', id, leftMs);
  }

  /** Records that a request of the grant was answered. @param isOfUser False for one of the application: it says nothing about others */
  succeeded(id: string, isOfUser: boolean): void {
    // Nearly always: nothing is paused.
    if (this.#pauses.size + this.#failed.size === 0 && this.#rejectedId === undefined) return;
    this.end(id, 'failed', 'client', 'ahead');
    if (!isOfUser) return;
    this.#answered();
    this.acceptClient();
  }

  /**
   * Records a token request that got no tokens, and begins the pauses that follow from it. Returns the error to throw: the
   * same, or one that says when to retry.
   *
   * @param isOfUser As for {@link succeeded}.
   * @param goodMs How long the access token is still valid: a refusal may mean that it is too early for a refresh.
   */
  failed(id: string, error: unknown, isOfUser: boolean, goodMs = 0): unknown {
    if (error instanceof ServiceUnavailableError) return this.#unanswered(id, error, isOfUser);
    if (!(error instanceof TokenError || error instanceof TokenResponseError)) return error;
    if (isOfUser) this.#answered();
    if (error instanceof TokenError && error.error === 'invalid_client') {
      this.begin('client', id, undefined, error);
      if (isOfUser) this.#rejectClient(id, error);
      return error;
    }
    const { retryAfterMs: askedMs } = responseFactsOf(error);
    if (goodMs > 0) this.begin('ahead', id, goodMs);
    else this.begin('failed', id, askedMs === undefined ? undefined : Math.min(askedMs, MAX_ASKED_MS), error);
    // Any other refusal means that the client is accepted; the page of another server, such as a proxy, means nothing.
    if (isOfUser && error instanceof TokenError) this.acceptClient();
    return error;
  }

  /** Records the failure of a login's code exchange: a wrong secret begins the pause of the client. */
  loginFailed(error: unknown): void {
    if (error instanceof TokenError && error.error === 'invalid_client') this.#rejectClient(ALL, error);
  }

  /** Ends the pauses of a rejected client: the service accepts it. */
  acceptClient(): void {
    if (this.#rejectedId === undefined) return;
    this.#rejectedId = undefined;
    for (const key of this.#pauses.keys()) if (key.startsWith('client ')) this.#pauses.delete(key);
  }

  #unanswered(id: string, failure: ServiceUnavailableError, isOfUser: boolean): ServiceUnavailableError {
    const askedMs = failure.retryAfter === undefined ? undefined : Math.min(failure.retryAfter * 1000, MAX_ASKED_MS);
    const ms = this.begin('failed', id, askedMs);
    if (isOfUser) {
      if (this.#failed.size < DOWN_AFTER_GRANTS) this.#failed.add(id);
      // Another grant tries sooner than in an hour: the service may mean this one alone.
      if (askedMs !== undefined) this.begin('asked', ALL, Math.min(askedMs, LIMITS.asked.maxMs));
      else if (this.#failed.size >= DOWN_AFTER_GRANTS) this.begin('failed', ALL);
    }
    const { message, code, cause } = failure;
    return new ServiceUnavailableError(message, { code, cause, retryAfter: ms / 1000 });
  }

  #answered(): void {
    this.#failed.clear();
    this.end(ALL, 'failed');
  }

  /** Pauses all grants at the second rejected grant in a row, or at a login: one grant alone may be at fault. */
  #rejectClient(id: string, error: TokenError): void {
    const isOneGrant = id !== ALL && id === (this.#rejectedId ?? id);
    this.#rejectedId ??= id;
    if (!isOneGrant || this.#pauses.has(`client ${ALL}`)) this.begin('client', ALL, undefined, error);
  }

  /** Returns the pauses that hold up a token request of the grant now. */
  #beforeRequest(id: string): readonly Pause[] {
    const keys = [`asked ${ALL}`, `client ${ALL}`, `failed ${ALL}`, `failed ${id}`, `client ${id}`];
    return keys.flatMap((key) => this.#active(key) ?? []);
  }

  #active(key: string): Pause | undefined {
    const pause = this.#pauses.get(key);
    return pause && remainingMs(pause.until, this.#clock(), pause.ms) > 0 ? pause : undefined;
  }
}
