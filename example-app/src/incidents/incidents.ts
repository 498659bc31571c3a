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
import { type Burst, type BurstOrder, latestBurst, outcomeWords } from '../panel/burst.js';
import { hear, type Journal } from '../panel/journal.js';
import type { BreakService, ServiceFault } from '../service.js';

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

/** The operations of a token store that fail. */
export type Breakage = 'none' | 'writes' | 'all';

/** The parts that can be broken. */
export interface IncidentOptions {
  readonly strategy: Strategy;
  /** Has the same token store and a cache of its own, as the strategy of another process would. */
  readonly otherProcess: Strategy;
  /** Breaks the token store in all processes. */
  readonly breakStore: (broken: Breakage) => Promise<void>;
  readonly breakService: BreakService;
  /** Makes calls at once, in one process or in several. Resolves when the journal has them. */
  readonly burst: (grantId: string, order: BurstOrder) => Promise<void>;
  readonly journal: Journal;
  /** Epoch milliseconds. */
  readonly clock: () => number;
}

/** How the sentence of an incident begins, what goes wrong at the service, and at the token store for some seconds. */
interface Effect {
  readonly says: string;
  readonly faults: readonly ServiceFault[];
  readonly store?: readonly [broken: Breakage, seconds: number];
}

const effects: Readonly<Record<string, Effect>> = {
  burst: { says: '12 calls met a refused token', faults: ['refuse', 'distant'] },
  refuse: { says: 'The service refused the token', faults: ['refuse'] },
  slow: { says: 'The token endpoint was slow', faults: ['refuse', 'slow'] },
  'other-process': { says: 'Another process refreshed first', faults: ['refuse'] },
  unsaved: { says: 'The token store takes no writes', faults: ['refuse'], store: ['writes', 10] },
  outage: { says: 'The service is down', faults: ['refuse', 'outage'] },
  'store-down': { says: 'The token store is down', faults: ['refuse'], store: ['all', 15] },
  'bad-secret': { says: 'The service refuses the client secret', faults: ['refuse', 'bad-secret'] },
  mend: { says: 'Everything is mended', faults: ['mend'], store: ['none', 0] },
  revoke: { says: 'The service ended the permission', faults: ['revoke'] },
  'lost-answer': { says: 'The answer to the refresh was lost', faults: ['refuse', 'lost-answer'] },
  'log-out': { says: 'You logged out during a refresh', faults: ['refuse', 'slow'] },
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

/** Causes incidents: a router for `POST /incidents/{name}`, to be used after `apiClient(strategy)`. */
export class Incidents {
  readonly router: Router = Router();
  readonly #options: IncidentOptions;
  #storeMends: NodeJS.Timeout | undefined;

  constructor(options: IncidentOptions) {
    this.#options = options;
    this.router.post('/:name', async (req, res, next) => {
      const { name } = req.params;
      const effect = Object.hasOwn(effects, name) ? effects[name] : undefined;
      if (!effect) return next();
      const { grantId } = req.apiClient;
      if (!req.apiClient.authorized || grantId === undefined) return res.redirect(303, '/');
      const incidentAt = options.clock();
      const verdict = await this.#cause(name, effect, grantId, req, res);
      // Written last: a logout has replaced the session.
      Object.assign(req.session, { verdict, incidentAt });
      // What came of it is still shown when the login has ended with it.
      if (!req.apiClient.authorized) req.session.endedGrant = grantId;
      await promisify(req.session.save.bind(req.session))();
      res.redirect(303, '/#panel');
    });
  }

  /** Mends the token store and closes the strategy of the other process. */
  async close(): Promise<void> {
    clearTimeout(this.#storeMends);
    await this.#options.breakStore('none');
    await this.#options.otherProcess.close();
  }

  async #cause(name: string, effect: Effect, grantId: string, req: Request, res: Response): Promise<Verdict> {
    const { strategy, otherProcess, breakStore, breakService, burst, journal, clock } = this.#options;
    const userId = req.user?.id;
    const refreshing = name === 'log-out' ? breakService('await-refresh', userId) : undefined;
    for (const fault of effect.faults) await breakService(fault, userId);
    if (effect.store) {
      const [broken, seconds] = effect.store;
      clearTimeout(this.#storeMends);
      await breakStore(broken);
      this.#storeMends = setTimeout(() => void breakStore('none'), seconds * 1000).unref();
    }
    if (name === 'burst') {
      await burst(grantId, { burst: randomUUID(), userId, from: 1, count: callsOfBurst });
      return burstVerdict(effect, latestBurst(journal.of(grantId).entries));
    }
    if (name === 'other-process') await otherProcess.client(grantId).projects();
    const refreshes: string[] = [];
    const stopHearing = hear(clock, ({ kind, event }) => {
      if (kind === 'refresh' && event.grantId === grantId) refreshes.push(refreshWords[event.outcome]);
    });
    // The client of this request may have met what is mended now.
    const calling = callApi(name === 'mend' ? strategy.client(grantId) : req.apiClient);
    if (name === 'log-out') {
      await refreshing;
      await promisify(logout(strategy))(req, res);
    }
    const call = await calling;
    stopHearing();
    const isLoggedIn = req.apiClient.authorized;
    const lost = name === 'log-out' ? 'nothing logs you in again' : 'log in to go on';
    const parts = [...new Set(refreshes), call.words, isLoggedIn ? 'nobody logged out' : lost];
    const isGood = call.succeeded || name === 'log-out';
    return { text: `${effect.says}: ${parts.join(', ')}.`, tone: isGood ? 'good' : isLoggedIn ? 'kept' : 'ended' };
  }
}

/** Makes one API call. Resolves to what came of it. */
async function callApi(client: ApiClient): Promise<{ readonly succeeded: boolean; readonly words: string }> {
  const startedAt = performance.now();
  try {
    await client.projects();
    return { succeeded: true, words: `the call succeeded after ${Math.ceil(performance.now() - startedAt)} ms` };
  } catch (error) {
    if (!(error instanceof OAuthAppError)) throw error;
    const { retryAfter }: { retryAfter?: number | undefined } =
      error instanceof ServiceUnavailableError || error instanceof ApiError ? error : {};
    const hint = retryAfter === undefined ? '' : ` (try again in ${Math.ceil(retryAfter)} s)`;
    return { succeeded: false, words: `the call failed with ${error.status}${hint}` };
  }
}

function burstVerdict({ says }: Effect, burst: Burst | undefined): Verdict {
  if (!burst) return { text: `${says}: none has ended.`, tone: 'kept' };
  const isLost = burst.lostLogins > 0;
  const parts = [...outcomeWords(burst), isLost ? 'log in to go on' : 'nobody logged out'];
  const isGood = burst.rows.every(({ outcome }) => /^2/.test(outcome));
  return { text: `${says}: ${parts.join(', ')}.`, tone: isLost ? 'ended' : isGood ? 'good' : 'kept' };
}

/** Returns a token store with a breakage that can be set: what it still takes is passed on to a store that works. */
export function breakable<S extends ListedTokenStore>(store: S): S & { broken: Breakage } {
  let broken: Breakage = 'none';
  const reads: readonly unknown[] = ['get', 'lock', 'list'];
  return new Proxy(store as S & { broken: Breakage }, {
    get(_store, name) {
      if (name === 'broken') return broken;
      const operation: unknown = Reflect.get(store, name);
      if (typeof operation !== 'function' || name === 'watch') return operation;
      return function operate(...args: unknown[]) {
        if (broken === 'all' || (broken === 'writes' && !reads.includes(name))) {
          throw new Error('The token store is broken on purpose.');
        }
        return operation.apply(store, args);
      };
    },
    set(_store, name, value: Breakage) {
      if (name === 'broken') broken = value;
      return name === 'broken';
    },
  });
}
