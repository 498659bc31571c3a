import { channel } from 'node:diagnostics_channel';

/** The end of a login. Channel `passport-oauth-app:login`. */
export interface LoginEvent {
  readonly strategy: string;
  /** The tenant, of a strategy that stands in for many. */
  readonly tenant?: string;
  readonly outcome: 'success' | 'declined' | 'refused' | 'error';
  /** Id of the new grant, if the login succeeded. */
  readonly grantId?: string;
  /** The scopes that the service has granted, if the login succeeded. */
  readonly scope?: readonly string[];
  /** Code of the error or reason, unless the login succeeded. */
  readonly reason?: string;
  /** From the callback's arrival, in milliseconds. */
  readonly durationMs: number;
}

/** The end of a refresh, or a later save of a refreshed grant. Channel `passport-oauth-app:refresh`. */
export interface RefreshEvent {
  readonly strategy: string;
  /** The tenant, of a strategy that stands in for many. */
  readonly tenant?: string;
  readonly grantId: string;
  /**
   * `adopted`: another process had refreshed already. `unsaved`: refreshed, but the store could not save it yet.
   * `saved`: the store saved it later. `discarded`: the store had another grant, or none, at the time of the save.
   */
  readonly outcome: 'refreshed' | 'adopted' | 'unsaved' | 'saved' | 'discarded' | 'failed';
  /** The cause of the refresh: a request that waits, the time before expiry, a 401 of the API, `strategy.keepAlive`, or a refresh whose answer was lost. */
  readonly trigger: 'expired' | 'ahead' | 'refused' | 'keep-alive' | 'retry';
  /** Code of the error, if it failed. */
  readonly reason?: string;
  /** The scopes that the grant has now, if they are not those that it had. */
  readonly scope?: readonly string[];
  /** The waits for its turn at the token endpoint and for the lock included. With `saved`, and with `discarded` after `unsaved`: how long the new pair was in memory only. */
  readonly durationMs: number;
  /** How long it waited for the lock of the token store, in milliseconds; left out below 100. Part of `durationMs`. */
  readonly lockWaitMs?: number;
  /** True if the lock became too old while it was held: the process was frozen, or the store slow. It was taken again. */
  readonly lostLease?: true;
  /** True if a refresh token was sent that another process had used before: a service may revoke the grant for that. */
  readonly reused?: true;
}

/** A grant that ended, or whose record cannot be read. Channel `passport-oauth-app:grant-lost`. */
export interface GrantLostEvent {
  readonly strategy: string;
  /** The tenant, of a strategy that stands in for many. */
  readonly tenant?: string;
  readonly grantId: string;
  /**
   * `refused`: the service has refused the refresh token, or the API an access token that nothing can replace. `expired`: the
   * refresh token has, by the service's own statement, or an access token that nothing can replace. `other-subject`: a refresh
   * answered for another user. `unreadable`: the record is encrypted with an unknown key, damaged or moved; it is kept.
   */
  readonly reason: 'refused' | 'expired' | 'other-subject' | 'unreadable';
}

/** What happened to a grant outside of refreshes. Channel `passport-oauth-app:grant`. */
export interface GrantEvent {
  readonly strategy: string;
  /** The tenant, of a strategy that stands in for many. */
  readonly tenant?: string;
  readonly grantId: string;
  /**
   * `stored`: by a login. `imported`: by `importGrant`. `deleted`: by a logout, by `deleteGrant`, or because another login
   * has taken its place. `revoked`, `revocation-failed`: at the service, after it was deleted here.
   */
  readonly action: 'stored' | 'imported' | 'deleted' | 'revoked' | 'revocation-failed';
}

/** One try of an API call ended: a request that was sent, or a call that failed before any. Channel `passport-oauth-app:api`. */
export interface ApiEvent {
  readonly strategy: string;
  /** The tenant, of a strategy that stands in for many. */
  readonly tenant?: string;
  readonly grantId: string | undefined;
  readonly method: string;
  /** Scheme, host and port of the API that the request was sent to; `undefined` if none was sent. */
  readonly origin?: string;
  /** The path below `/api/v2`, without the query. */
  readonly path: string;
  /** Status of the response, if there was one. */
  readonly status?: number;
  /** Code of the error, if the try failed. */
  readonly reason?: string;
  /** Requests of the call so far, this one included. */
  readonly attempts: number;
  /** Of this try, in milliseconds. */
  readonly durationMs: number;
}

/** A channel of `node:diagnostics_channel`, with the type of its events. */
export interface EventChannel<E> {
  /** Without subscribers, an event need not be made. */
  readonly hasSubscribers: boolean;
  publish(event: E): void;
}

/** The channel of ended logins. */
export const loginChannel: EventChannel<LoginEvent> = channel('passport-oauth-app:login');

/** The channel of ended refreshes. */
export const refreshChannel: EventChannel<RefreshEvent> = channel('passport-oauth-app:refresh');

/** The channel of lost grants. */
export const grantLostChannel: EventChannel<GrantLostEvent> = channel('passport-oauth-app:grant-lost');

/** The channel of stored, deleted and revoked grants. */
export const grantChannel: EventChannel<GrantEvent> = channel('passport-oauth-app:grant');

/** The channel of the tries of API calls. */
export const apiChannel: EventChannel<ApiEvent> = channel('passport-oauth-app:api');

/** Warns that several processes refresh the same grants, in a token store without a lock. */
export function warnOfUnlockedRefresh(strategy: string): void {
  process.emitWarning(
    `Several processes refresh the grants of the strategy "${strategy}", and its token store has no lock: a service that ` +
      'revokes reused refresh tokens logs users out. Set tokenStore to a store with a lock, such as redisTokenStore(…) or ' +
      'postgresTokenStore(…).',
    { type: 'PassportOAuthAppWarning', code: 'ERR_NO_LOCK' },
  );
}

/** Warns that a refresh may outlive the lock of its grant. @param leaseMs Of the token store. @param timeoutMs Of the strategy. */
export function warnOfShortLease(strategy: string, leaseMs: number, timeoutMs: number, shortestMs: number): void {
  process.emitWarning(
    `The token store of the strategy "${strategy}" locks grants for ${leaseMs / 1000} s, too short for its timeout of ${timeoutMs} ms: ` +
      'a slow refresh outlives its lock, and another process may send the same refresh token. ' +
      `Set the option lease of the store to ${shortestMs / 1000} or more, or a shorter timeout.`,
    { type: 'PassportOAuthAppWarning', code: 'ERR_SHORT_LEASE' },
  );
}
