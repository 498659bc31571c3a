import type { ApiEvent, RefreshEvent } from 'passport-oauth-app';
import type { Happening } from './happening.js';
import type { Entry } from './journal.js';

type Words = Pick<Entry, 'title' | 'note' | 'good'>;

const triggers: Readonly<Record<RefreshEvent['trigger'], string>> = {
  ahead: 'ahead of its expiry, while requests went on with the old one',
  expired: 'its lifetime was over, so whoever asked waited for the new one',
  refused: 'the service had refused the old one before its time',
};

const outcomes: Readonly<Record<RefreshEvent['outcome'], string>> = {
  refreshed: 'Token refreshed',
  adopted: 'Token taken over from another process',
  unsaved: 'Token refreshed, but not saved yet',
  saved: 'Token saved after all',
  discarded: 'Refreshed token given up: somebody else was faster',
  failed: 'Refresh failed',
};

/** What happened, in words. */
export function wordsFor(happening: Happening): Words {
  switch (happening.kind) {
    case 'login':
      return { title: 'Logged in', note: `code exchanged for tokens, ${ms(happening.event)}`, good: true };
    case 'refresh':
      return wordsForRefresh(happening.event);
    case 'api':
      return wordsForApi(happening.event);
    case 'grant-lost':
      return { title: 'Permission ended', note: `reason: ${happening.event.reason}`, good: false };
  }
}

function wordsForRefresh(event: RefreshEvent): Words {
  const { outcome, trigger, reason } = event;
  const why = outcome === 'adopted' ? 'one refresh was enough for all of them' : (reason ?? triggers[trigger]);
  return {
    title: outcomes[outcome],
    note: `${why}, ${ms(event)}`,
    good: outcome !== 'failed' && outcome !== 'unsaved',
  };
}

function wordsForApi(event: ApiEvent): Words {
  const { method, path, status, reason, attempts } = event;
  const tries = attempts > 1 ? `, ${attempts} tries` : '';
  return {
    title: `${method} ${path}`,
    note: `${status ?? reason ?? 'no answer'}${tries}, ${ms(event)}`,
    good: reason === undefined,
  };
}

function ms({ durationMs }: { readonly durationMs: number }): string {
  return `${Math.max(1, Math.round(durationMs))} ms`;
}
