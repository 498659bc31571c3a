import { channel } from 'node:diagnostics_channel';

/** A login came to its end. Channel `passport-oauth-app:login`. */
export interface LoginEvent {
  readonly strategy: string;
  readonly outcome: 'success' | 'declined' | 'refused' | 'error';
  /** Of the new grant, on success. */
  readonly grantId?: string;
  /** Code of the error or reason, where the outcome is not success. */
  readonly reason?: string;
  /** From the callback's arrival, in milliseconds. */
  readonly durationMs: number;
}

/** A grant was refreshed, or it was tried. Channel `passport-oauth-app:refresh`. */
export interface RefreshEvent {
  readonly strategy: string;
  readonly grantId: string;
  /** `adopted`: another process had refreshed already. `unsaved`: refreshed, but the store could not take it yet. `saved`: the store took it later. */
  readonly outcome: 'refreshed' | 'adopted' | 'unsaved' | 'saved' | 'discarded' | 'failed';
  /** What asked for it: a request that waits, the time before expiry, or a 401 of the API. */
  readonly trigger: 'expired' | 'ahead' | 'refused';
  /** Code of the error, where it failed. */
  readonly reason?: string;
  readonly durationMs: number;
}

/** A grant is gone or cannot be read. Channel `passport-oauth-app:grant-lost`. */
export interface GrantLostEvent {
  readonly strategy: string;
  readonly grantId: string;
  /** `refused`: invalid_grant. `other-subject`: a refresh answered for somebody else. `unreadable`: sealed with an unknown key, damaged or moved; the record is kept. */
  readonly reason: 'refused' | 'other-subject' | 'unreadable';
}

/** One try of an API call ended: a request that was sent, or a call that failed before any. Channel `passport-oauth-app:api`. */
export interface ApiEvent {
  readonly strategy: string;
  readonly grantId: string | undefined;
  readonly method: string;
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

const login = channel('passport-oauth-app:login');
const refresh = channel('passport-oauth-app:refresh');
const grantLost = channel('passport-oauth-app:grant-lost');
const api = channel('passport-oauth-app:api');

/** Whether anyone listens to API calls: lets the caller spare the clock and the object. */
export function apiEventsWanted(): boolean {
  return api.hasSubscribers;
}

/** Tells of a login. */
export function publishLogin(event: LoginEvent): void {
  login.publish(event);
}

/** Tells of a refresh. */
export function publishRefresh(event: RefreshEvent): void {
  refresh.publish(event);
}

/** Tells of a grant that is gone or cannot be read. */
export function publishGrantLost(event: GrantLostEvent): void {
  grantLost.publish(event);
}

/** Tells of an API call. */
export function publishApi(event: ApiEvent): void {
  api.publish(event);
}
