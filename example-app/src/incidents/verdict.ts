import { ApiError, type OAuthAppError, type RefreshEvent, ServiceUnavailableError } from 'passport-oauth-app';
import { type Burst, countedOutcomes } from '../panel/burst.js';
import type { IncidentName } from './catalogue.js';

/** What came of an incident, in one sentence. */
export interface Verdict {
  readonly text: string;
  /** `kept`: calls fail, and the login is kept. `ended`: the user has to log in again. */
  readonly tone: 'good' | 'kept' | 'ended';
}

/** What was seen after an incident. */
export interface Outcome {
  /** Of the API call. */
  readonly durationMs: number;
  readonly error?: OAuthAppError;
  /** Refreshes that ended during the call, in this process. */
  readonly refreshes: readonly RefreshEvent[];
  readonly isLoggedIn: boolean;
}

/** How the sentence of an incident begins. */
const beginnings: Readonly<Record<Exclude<IncidentName, 'burst'>, string>> = {
  refuse: 'The service refused the token',
  slow: 'The token endpoint was slow',
  'other-process': 'Another process refreshed first',
  unsaved: 'The token store takes no writes',
  outage: 'The service is down',
  'store-down': 'The token store is down',
  'bad-secret': 'The service refuses the client secret',
  mend: 'Everything is mended',
  revoke: 'The service ended the permission',
  'lost-answer': 'The answer to the refresh was lost',
  'log-out': 'You logged out during a refresh',
};

const refreshWords: Readonly<Record<RefreshEvent['outcome'], string>> = {
  refreshed: '1 refresh',
  adopted: 'its tokens are used, no refresh',
  unsaved: '1 refresh, its tokens are kept in memory',
  saved: 'the tokens in memory were saved',
  discarded: 'the late refresh was discarded',
  failed: 'the refresh failed',
};

/** Returns the verdict on an incident with one API call. */
export function verdictOf(
  name: Exclude<IncidentName, 'burst'>,
  { durationMs, error, refreshes, isLoggedIn }: Outcome,
): Verdict {
  const refreshed = [...new Set(refreshes.map(({ outcome }) => refreshWords[outcome]))];
  const login = isLoggedIn ? 'nobody logged out' : name === 'log-out' ? 'nothing logs you in again' : 'log in to go on';
  const parts = [...refreshed, callWords(durationMs, error), login];
  const tone = !error || name === 'log-out' ? 'good' : isLoggedIn ? 'kept' : 'ended';
  return { text: `${beginnings[name]}: ${parts.join(', ')}.`, tone };
}

function callWords(durationMs: number, error: OAuthAppError | undefined): string {
  if (!error) return `the call succeeded after ${Math.ceil(durationMs)} ms`;
  const hasHint = error instanceof ServiceUnavailableError || error instanceof ApiError;
  const hint = hasHint && error.retryAfter !== undefined ? ` (try again in ${Math.ceil(error.retryAfter)} s)` : '';
  return `the call failed with ${error.status}${hint}`;
}

/** Returns the verdict on calls that were made at once and met a refused token. */
export function burstVerdict(burst: Burst | undefined): Verdict {
  const { rows = [], refreshes = [], lostLogins = 0 } = burst ?? {};
  const isGood = rows.every(({ outcome }) => /^2/.test(outcome));
  const parts = [
    `${refreshes.length} ${refreshes.length === 1 ? 'refresh' : 'refreshes'}`,
    ...countedOutcomes(rows),
    lostLogins === 0 ? 'nobody logged out' : 'log in to go on',
  ];
  const tone = lostLogins > 0 ? 'ended' : isGood ? 'good' : 'kept';
  return { text: `${rows.length} calls met a refused token: ${parts.join(', ')}.`, tone };
}
