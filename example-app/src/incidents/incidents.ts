import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { promisify } from 'node:util';
import { type Request, type Response, Router } from 'express';
import type { SessionData } from 'express-session';
import {
  type ApiClient,
  type ListedTokenStore,
  logout,
  OAuthAppError,
  type RefreshEvent,
  type Strategy,
  type StrategyOptions,
} from 'passport-oauth-app';
import { createStrategy } from '../app.js';
import { latestBurst, outcomeWords } from '../panel/burst.js';
import { hear, type Journal } from '../panel/journal.js';
import type { Effect, Primary } from '../primary.js';

declare module 'express-session' {
  interface SessionData {
    /** The result of an incident in one sentence. The next page shows it once. */
    verdict?: {
      readonly text: string;
      /** `kept`: calls fail, and the login is kept. `ended`: the user has to log in again. */
      readonly tone: 'good' | 'kept' | 'ended';
    };
    /** When the latest incident began, in epoch milliseconds. */
    incidentAt?: number;
    /** The grant that an incident has ended: its last events are still shown. */
    endedGrant?: string;
  }
}

type Verdict = NonNullable<SessionData['verdict']>;

const slow = { delay: 3_000 };
const outage = { status: 503, headers: { 'Retry-After': '2' }, seconds: 30 };
const badSecret = { body: { error: 'invalid_client' }, seconds: 15 };
const reads = ['get', 'lock', 'list'];

/** How the sentence of an incident begins, and what goes wrong, by the names of the catalogue. */
const incidents: ReadonlyMap<string, readonly [says: string, effect: Effect]> = new Map([
  // As slow as over a network.
  ['burst', ['12 calls arrived with a rejected token', { fault: { delay: 300 } }]],
  ['refuse', ['The service rejected the token', {}]],
  ['slow', ['The token endpoint was slow', { fault: slow }]],
  ['other-process', ['Another process refreshed first', {}]],
  ['unsaved', ['The token store is read-only', { store: [reads, 10] }]],
  ['outage', ['The service is down', { fault: outage }]],
  ['store-down', ['The token store is down', { store: [[], 15] }]],
  ['bad-secret', ['The service rejects the client secret', { fault: badSecret }]],
  ['mend', ['Everything works again', { instead: 'mend', store: [[], 0] }]],
  ['revoke', ['The service ended your access', { instead: 'revoke' }]],
  ['lost-answer', ['The response to the refresh was lost', { fault: { afterEffect: true } }]],
  ['log-out', ['You logged out during a refresh', { fault: slow }]],
]);
const callsOfBurst = 12;
/** How long after its beginning a slow refresh meets the logout. */
const logOutMs = 500;

const refreshWords: Readonly<Record<RefreshEvent['outcome'], string>> = {
  refreshed: '1 refresh',
  adopted: 'its tokens are used, no refresh',
  unsaved: '1 refresh, its tokens are kept in memory',
  saved: 'the tokens in memory were saved',
  discarded: 'the late tokens were discarded',
  failed: 'the refresh failed',
};

/** Returns a router for `POST /incidents/{name}`, to be used after `apiClient(strategy)`. */
export function createIncidents(strategy: Strategy, options: StrategyOptions, primary: Primary, journal: Journal) {
  const { clock = Date.now } = options;
  const router = Router();
  router.post('/:name', async (req, res, next) => {
    const { name } = req.params;
    const [says, effect] = incidents.get(name) ?? [];
    if (says === undefined || effect === undefined) return next();
    const { grantId } = req.apiClient;
    if (!req.apiClient.authorized || grantId === undefined) return res.redirect(303, '/');
    const incidentAt = clock();
    const userId = req.user?.id ?? '';
    await primary.breakParts(effect, userId);
    const verdict =
      name === 'burst' ? await callAtOnce(says, grantId, userId) : await callOnce(name, says, grantId, req, res);
    // Written last: a logout has replaced the session.
    Object.assign(req.session, { verdict, incidentAt });
    // What came of it is still shown when the login has ended with it.
    if (!req.apiClient.authorized) req.session.endedGrant = grantId;
    await promisify(req.session.save.bind(req.session))();
    res.redirect(303, '/#panel');
  });
  return router;

  async function callAtOnce(says: string, grantId: string, userId: string): Promise<Verdict> {
    const burst = randomUUID();
    const numbers = Array.from({ length: callsOfBurst }, (_, index) => index + 1);
    const causes = numbers.map((number) => ({ userId, call: { burst, number } }));
    await primary.burst(grantId, causes);
    const latest = latestBurst(journal.of(grantId).entries);
    if (!latest) return { text: `${says}: none finished.`, tone: 'kept' };
    const isGood = latest.rows.every(({ outcome }) => outcome.startsWith('2'));
    return verdictOf(says, outcomeWords(latest), isGood, latest.lostLogins === 0);
  }

  async function callOnce(name: string, says: string, grantId: string, req: Request, res: Response): Promise<Verdict> {
    if (name === 'other-process') {
      // As another process has it: the same records, by a store object that shares nothing with this one.
      const tokenStore = options.tokenStore && new Proxy(options.tokenStore, {});
      const other = createStrategy({ ...options, tokenStore, cache: false });
      await callApi(other.client(grantId)).finally(() => other.close());
    }
    const refreshes = new Set<string>();
    const stopHearing = hear(clock, ({ kind, event }) => {
      if (kind === 'refresh' && event.grantId === grantId) refreshes.add(refreshWords[event.outcome]);
    });
    // The client of this request may have met what is mended now.
    const calling = callApi(name === 'mend' ? strategy.client(grantId) : req.apiClient);
    if (name === 'log-out') {
      await pause(logOutMs);
      await promisify(logout(strategy))(req, res);
    }
    const call = await calling;
    stopHearing();
    const outcomes = [...refreshes, call.words];
    if (name === 'log-out') return { text: `${says}: ${outcomes.join(', ')}, you stay logged out.`, tone: 'good' };
    return verdictOf(says, outcomes, call.succeeded, req.apiClient.authorized);
  }
}

function verdictOf(says: string, outcomes: readonly string[], isGood: boolean, isLoggedIn: boolean): Verdict {
  const parts = [...outcomes, isLoggedIn ? 'still logged in' : 'log in to continue'];
  return { text: `${says}: ${parts.join(', ')}.`, tone: isGood ? 'good' : isLoggedIn ? 'kept' : 'ended' };
}

/** Makes one API call. Resolves to what came of it. */
async function callApi(client: ApiClient): Promise<{ readonly succeeded: boolean; readonly words: string }> {
  const startedAt = performance.now();
  try {
    await client.projects();
    return { succeeded: true, words: `the call succeeded after ${Math.ceil(performance.now() - startedAt)} ms` };
  } catch (error) {
    if (!(error instanceof OAuthAppError)) throw error;
    const seconds = 'retryAfter' in error ? error.retryAfter : undefined;
    const hint = seconds === undefined ? '' : ` (try again in ${seconds} s)`;
    return { succeeded: false, words: `the call failed with ${error.status}${hint}` };
  }
}

/** Returns a token store that passes on what it does, and a function that lets it do only some of that for some seconds. */
export function breakable(store: ListedTokenStore) {
  let working: readonly string[] = [];
  let mendedAt = 0;
  const breakStore = (operations: readonly string[], seconds: number) => {
    working = operations;
    mendedAt = performance.now() + seconds * 1000;
  };
  const tokenStore = new Proxy(store, {
    get(_store, name) {
      const operation: unknown = Reflect.get(store, name);
      if (typeof operation !== 'function' || name === 'watch') return operation;
      return function operate(...args: unknown[]) {
        if (performance.now() < mendedAt && !working.includes(String(name)))
          throw new Error('The token store is broken on purpose.');
        return operation.apply(store, args);
      };
    },
  });
  return { tokenStore, breakStore };
}
