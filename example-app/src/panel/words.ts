import type { ApiEvent, GrantLostEvent, RefreshEvent } from 'passport-oauth-app';
import type { Entry } from './journal.js';

/** An entry in words. */
export interface Words {
  readonly title: string;
  readonly note: string;
  readonly good: boolean;
}

const triggers: Readonly<Record<RefreshEvent['trigger'], string>> = {
  ahead: 'ahead of its expiry, while requests went on with the old one',
  expired: 'its lifetime was over, so requests waited for the new one',
  refused: 'the service had refused the old one before its time',
  'keep-alive': 'it was old, though nobody had used it',
};

const outcomes: Readonly<Record<RefreshEvent['outcome'], string>> = {
  refreshed: 'Token refreshed',
  adopted: 'Token of another process used',
  unsaved: 'Token refreshed, not saved yet',
  saved: 'Token saved at last',
  discarded: 'Refreshed token discarded',
  failed: 'Refresh failed',
};

const outcomeNotes: Partial<Record<RefreshEvent['outcome'], string>> = {
  adopted: 'it had refreshed first, so no request was needed',
  unsaved: 'the token store failed, so the pair is kept in memory',
  saved: 'the token store works again',
  discarded: 'the grant was ended or replaced meanwhile',
};

const reasons: Readonly<Record<string, string>> = {
  ERR_SERVICE_UNAVAILABLE: 'the service does not answer',
  ERR_SERVICE_TIMEOUT: 'the service does not answer in time',
  ERR_TOKEN_STORE: 'the token store does not answer',
  ERR_TOKEN_REFUSED: 'the service refuses the client secret',
  ERR_TOKEN_STORE_TIMEOUT: 'the token store does not answer in time',
  ERR_TOKEN_STORE_LOCKED: 'another process holds the lock of the grant',
  ERR_TOKEN_RESPONSE: 'the response of the token endpoint is unusable',
  ERR_NOT_AUTHORIZED: 'the login has ended',
};

const lossReasons: Readonly<Record<GrantLostEvent['reason'], string>> = {
  refused: 'the service refused the refresh token',
  expired: 'the refresh token has expired',
  'other-subject': 'the service returned tokens of another user',
  unreadable: 'the stored record could not be read',
};

/** Returns the code of an error in words. */
export function reasonWords(code: string | undefined): string | undefined {
  return code === undefined ? undefined : (reasons[code] ?? 'the service refuses it');
}

/** Returns an entry in words. */
export function wordsFor({ kind, event }: Entry): Words {
  switch (kind) {
    case 'login':
      return { title: 'Logged in', note: `code exchanged for tokens, ${ms(event)}`, good: true };
    case 'refresh': {
      const { outcome, trigger, reason } = event;
      const note = outcomeNotes[outcome] ?? reasonWords(reason) ?? triggers[trigger];
      return {
        title: outcomes[outcome],
        note: `${note}, ${ms(event)}`,
        good: reason === undefined && outcome !== 'unsaved',
      };
    }
    case 'api':
      return apiWords(event);
    case 'grant-lost':
      return { title: 'Permission ended', note: lossReasons[event.reason], good: false };
  }
}

function apiWords({ method, path, status, reason, attempts, durationMs }: ApiEvent): Words {
  const outcome = status ?? reasonWords(reason) ?? 'no answer';
  const tries = attempts > 1 ? `, ${attempts} attempts` : '';
  return { title: `${method} ${path}`, note: `${outcome}${tries}, ${ms({ durationMs })}`, good: reason === undefined };
}

function ms({ durationMs }: { readonly durationMs: number }): string {
  return `${Math.max(1, Math.round(durationMs))} ms`;
}

/** Returns the time of day of the server, to the second. */
export function clockTime(at: number): string {
  return new Date(at).toTimeString().slice(0, 8);
}
