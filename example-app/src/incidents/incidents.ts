import { randomUUID } from 'node:crypto';
import { promisify } from 'node:util';
import { type Request, type Response, Router } from 'express';
import {
  type ApiClient,
  ApiError,
  type ListedTokenStore,
  logout,
  OAuthAppError,
  type RefreshEvent,
  ServiceUnavailableError,
  type Strategy,
} from 'passport-oauth-app';
import { latestBurst, outcomeWords } from '../panel/burst.js';
import { hear, type Journal } from '../panel/journal.js';
import type { Breakage, Primary } from '../primary.js';
import type { ServiceFault } from '../service.js';

declare module 'express-session' {
  interface SessionData {
    /** Shown by the next page, once. */
    verdict?: Verdict;
    /** When the latest incident began, in epoch milliseconds. */
    incidentAt?: number;
    /** The grant that an incident has ended: its last events are still shown. */
    endedGrant?: string;
  }
}

/** What came of an incident, in one sentence. `kept`: calls fail, and the login is kept. `ended`: the user has to log in again. */
export interface Verdict {
  readonly text: string;
  readonly tone: 'good' | 'kept' | 'ended';
}

/** The parts that can be broken. */
export interface IncidentOptions {
  readonly strategy: Strategy;
  /** Has the same token store and a cache of its own, as the strategy of another process would. */
  readonly otherProcess: Strategy;
  readonly primary: Primary;
  readonly journal: Journal;
  /** Epoch milliseconds. */
  readonly clock: () => number;
}

/** How the sentence of an incident begins, what goes wrong at the service, and at the token store for some seconds. */
type Effect = readonly [says: string, faults: readonly ServiceFault[], store?: Breakage, seconds?: number];

const effects: Readonly<Record<string, Effect>> = {
  burst: ['12 calls met a refused token', ['refuse', 'distant']],
  refuse: ['The service refused the token', ['refuse']],
  slow: ['The token endpoint was slow', ['refuse', 'slow']],
  'other-process': ['Another process refreshed first', ['refuse']],
  unsaved: ['The token store takes no writes', ['refuse'], 'writes', 10],
  outage: ['The service is down', ['refuse', 'outage']],
  'store-down': ['The token store is down', ['refuse'], 'all', 15],
  'bad-secret': ['The service refuses the client secret', ['refuse', 'bad-secret']],
  mend: ['Everything is mended', ['mend'], 'none', 0],
  revoke: ['The service ended the permission', ['revoke']],
  'lost-answer': ['The answer to the refresh was lost', ['refuse', 'lost-answer']],
  'log-out': ['You logged out during a refresh', ['refuse', 'slow']],
};
const callsOfBurst = 12;

const refreshWords: Readonly<Record<RefreshEvent['outcome'], string>> = {
  refreshed: '1 refresh',
  adopted: 'its tokens are used, no refresh',
  unsaved: '1 refresh, its tokens are kept in memory',
  saved: 'the tokens in memory were saved',
  discarded: 'the late refresh was discarded',
  failed: 'the refresh failed',
};

/** Causes incidents: a router for `POST /incidents/{name}`, to be used after `apiClient(strategy)`. `close` mends the token store. */
export function createIncidents({ strategy, otherProcess, primary, journal, clock }: IncidentOptions) {
  let storeMends: NodeJS.Timeout | undefined;
  const router = Router();
  router.post('/:name', async (req, res, next) => {
    const { name } = req.params;
    const effect = Object.hasOwn(effects, name) ? effects[name] : undefined;
    if (!effect) return next();
    const { grantId } = req.apiClient;
    if (!req.apiClient.authorized || grantId === undefined) return res.redirect(303, '/');
    const incidentAt = clock();
    const verdict = await cause(name, effect, grantId, req, res);
    // Written last: a logout has replaced the session.
    Object.assign(req.session, { verdict, incidentAt });
    // What came of it is still shown when the login has ended with it.
    if (!req.apiClient.authorized) req.session.endedGrant = grantId;
    await promisify(req.session.save.bind(req.session))();
    res.redirect(303, '/#panel');
  });
  const close = async () => {
    clearTimeout(storeMends);
    await primary.breakStore('none');
  };
  return { router, close };

  async function cause(name: string, effect: Effect, grantId: string, req: Request, res: Response): Promise<Verdict> {
    const [says, faults, broken, seconds = 0] = effect;
    const userId = req.user?.id;
    const refreshing = name === 'log-out' ? primary.breakService('await-refresh', userId) : undefined;
    for (const fault of faults) await primary.breakService(fault, userId);
    if (broken) {
      clearTimeout(storeMends);
      await primary.breakStore(broken);
      storeMends = setTimeout(() => void primary.breakStore('none'), seconds * 1000).unref();
    }
    if (name === 'burst') {
      await primary.burst(grantId, { burst: randomUUID(), userId, from: 1, count: callsOfBurst });
      const latest = latestBurst(journal.of(grantId).entries);
      if (!latest) return { text: `${says}: none has ended.`, tone: 'kept' };
      const isGood = latest.rows.every(({ outcome }) => outcome.startsWith('2'));
      return verdictOf(says, outcomeWords(latest), isGood, latest.lostLogins === 0);
    }
    if (name === 'other-process') await otherProcess.client(grantId).projects();
    const refreshes = new Set<string>();
    const stopHearing = hear(clock, ({ kind, event }) => {
      if (kind === 'refresh' && event.grantId === grantId) refreshes.add(refreshWords[event.outcome]);
    });
    // The client of this request may have met what is mended now.
    const calling = callApi(name === 'mend' ? strategy.client(grantId) : req.apiClient);
    if (name === 'log-out') {
      await refreshing;
      await promisify(logout(strategy))(req, res);
    }
    const call = await calling;
    stopHearing();
    const lost = name === 'log-out' ? 'nothing logs you in again' : 'log in to go on';
    const isGood = call.succeeded || name === 'log-out';
    return verdictOf(says, [...refreshes, call.words], isGood, req.apiClient.authorized, lost);
  }
}

function verdictOf(
  says: string,
  outcomes: readonly string[],
  isGood: boolean,
  isLoggedIn: boolean,
  lost = 'log in to go on',
): Verdict {
  const parts = [...outcomes, isLoggedIn ? 'nobody logged out' : lost];
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
    const isPassing = error instanceof ServiceUnavailableError || error instanceof ApiError;
    const hint = isPassing && error.retryAfter !== undefined ? ` (try again in ${Math.ceil(error.retryAfter)} s)` : '';
    return { succeeded: false, words: `the call failed with ${error.status}${hint}` };
  }
}

/** Returns a token store that can be broken: what it still takes is passed on to a store that works. */
export function breakable<S extends ListedTokenStore>(store: S): S & { break(broken: Breakage): void } {
  let broken: Breakage = 'none';
  const setBroken = (wanted: Breakage) => {
    broken = wanted;
  };
  return new Proxy(store as S & { break(broken: Breakage): void }, {
    get(_store, name) {
      if (name === 'break') return setBroken;
      const operation: unknown = Reflect.get(store, name);
      if (typeof operation !== 'function' || name === 'watch') return operation;
      return function operate(...args: unknown[]) {
        if (broken === 'all' || (broken === 'writes' && !['get', 'lock', 'list'].includes(String(name)))) {
          throw new Error('The token store is broken on purpose.');
        }
        return operation.apply(store, args);
      };
    },
  });
}
