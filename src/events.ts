import { channel } from 'node:diagnostics_channel';
import type { PublicName } from './errors.js';

/** The end of a login. Channel `passport-oauth-app:login`. */
export interface LoginEvent extends PublicName {
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
export interface RefreshEvent extends PublicName {
  readonly grantId: string;
  /**
   * `adopted`: another process had refreshed already. `unsaved`: refreshed, but the store could not save it yet.
   * `saved`: the store saved it later. `discarded`: the store had another grant, or none, at the time of the save.
   */
  readonly outcome: 'refreshed' | 'adopted' | 'unsaved' | 'saved' | 'discarded' | 'failed';
  /** `expired`: a request waited. `ahead`: soon to expire. `refused`: a 401 of the API. `keep-alive`: by `keepAlive`. `retry`: after a lost answer. */
  readonly trigger: 'expired' | 'ahead' | 'refused' | 'keep-alive' | 'retry';
  /** Code of the error, if it failed. */
  readonly reason?: string;
  /** The scopes that the grant has now, if they changed. */
  readonly scope?: readonly string[];
  /**
   * In milliseconds, with the waits for a slot at the token endpoint and for the lock. Of `saved`, and of `discarded` after
   * `unsaved`: how long the new pair was in memory only.
   */
  readonly durationMs: number;
  /** How long it waited for the lock of the token store, in milliseconds; left out below 100. Part of `durationMs`. */
  readonly lockWaitMs?: number;
  /** True if the lock expired while it was held, because the process was frozen or the store slow. It was taken again. */
  readonly lostLease?: true;
  /** True if another process had used the refresh token already. The service may revoke the grant for that. */
  readonly reused?: true;
}

/** A grant that ended, or whose record cannot be read. Channel `passport-oauth-app:grant-lost`. */
export interface GrantLostEvent extends PublicName {
  readonly grantId: string;
  /**
   * `refused`: the service refused the refresh token, or the API an access token without one. `expired`: the refresh token
   * expired as the service had said, or an access token without one. `other-subject`: a refresh returned another user's tokens.
   * `unreadable`: the record is encrypted with an unknown key, damaged or moved; it is kept.
   */
  readonly reason: 'refused' | 'expired' | 'other-subject' | 'unreadable';
}

/** A change of a grant other than a refresh. Channel `passport-oauth-app:grant`. */
export interface GrantEvent extends PublicName {
  readonly grantId: string;
  /**
   * `stored`: by a login. `imported`: by `importGrant`. `deleted`: by a logout, `deleteGrant`, or a login that replaced it.
   * `revoked`, `revocation-failed`: at the service, after it was deleted here.
   */
  readonly action: 'stored' | 'imported' | 'deleted' | 'revoked' | 'revocation-failed';
}

/** The end of one try of an API call: of a request, or of a call that failed before it sent one. Channel `passport-oauth-app:api`. */
export interface ApiEvent extends PublicName {
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
  readonly hasSubscribers: boolean;
  publish(event: E): void;
}

/** The end of each login. */
export const loginChannel: EventChannel<LoginEvent> = channel('passport-oauth-app:login');
/** The end of each refresh. */
export const refreshChannel: EventChannel<RefreshEvent> = channel('passport-oauth-app:refresh');
/** Lost grants. */
export const grantLostChannel: EventChannel<GrantLostEvent> = channel('passport-oauth-app:grant-lost');
/** Stored, deleted and revoked grants. */
export const grantChannel: EventChannel<GrantEvent> = channel('passport-oauth-app:grant');
/** The tries of API calls. */
export const apiChannel: EventChannel<ApiEvent> = channel('passport-oauth-app:api');

/** Warns that several processes refresh grants of a token store without a lock. */
export function warnOfUnlockedRefresh(strategy: string): void {
  process.emitWarning(
    `Several processes refresh the grants of the strategy "${strategy}", and its token store has no lock: a service that ` +
      'revokes reused refresh tokens logs users out. Set tokenStore to a store with a lock, such as redisTokenStore(…) or ' +
      'postgresTokenStore(…).',
    { type: 'PassportOAuthAppWarning', code: 'ERR_NO_LOCK' },
  );
}

/** Warns that a refresh may outlive the lock of its grant. */
export function warnOfShortLease(strategy: string, leaseMs: number, timeoutMs: number, shortestMs: number): void {
  process.emitWarning(
    `The token store of the strategy "${strategy}" locks grants for ${leaseMs / 1000} s, too short for its timeout of ${timeoutMs} ms: ` +
      'a slow refresh outlives its lock, and another process may send the same refresh token. ' +
      `Set the option lease of the store to ${shortestMs / 1000} or more, or a shorter timeout.`,
    { type: 'PassportOAuthAppWarning', code: 'ERR_SHORT_LEASE' },
  );
}
