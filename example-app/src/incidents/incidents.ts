import { randomUUID } from 'node:crypto';
import { promisify } from 'node:util';
import { type Request, type Response, Router } from 'express';
import { type ApiClient, logout, OAuthAppError, type RefreshEvent, type Strategy } from 'passport-oauth-app';
import { type BurstOrder, latestBurst } from '../panel/burst.js';
import { hear } from '../panel/happening.js';
import type { Journal } from '../panel/journal.js';
import type { Breakage } from './breakable-store.js';
import { findIncident, type IncidentName } from './catalogue.js';
import type { BreakService, ServiceFault } from './service-faults.js';
import { burstVerdict, type Verdict, verdictOf } from './verdict.js';

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

/** The parts that can be broken. */
export interface IncidentOptions {
  readonly strategy: Strategy;
  /** Has the same token store and a cache of its own, as the strategy of another process would. */
  readonly otherProcess: Strategy;
  /** Breaks the token store in all processes. */
  readonly breakStore: (broken: Breakage) => void | Promise<void>;
  readonly breakService: BreakService;
  /** Makes calls at once, in one process or in several. Resolves when the journal has them. */
  readonly burst: (grantId: string, order: BurstOrder) => Promise<void>;
  readonly journal: Journal;
  /** Epoch milliseconds. */
  readonly clock: () => number;
}

const callsOfBurst = 12;
/** The faults of the service that an incident begins with. */
const faults: Partial<Record<IncidentName, readonly ServiceFault[]>> = {
  burst: ['refuse', 'distant'],
  refuse: ['refuse'],
  slow: ['refuse', 'slow'],
  'other-process': ['refuse'],
  unsaved: ['refuse'],
  outage: ['refuse', 'outage'],
  'store-down': ['refuse'],
  'bad-secret': ['refuse', 'bad-secret'],
  'lost-answer': ['refuse', 'lost-answer'],
  revoke: ['revoke'],
  'log-out': ['refuse', 'slow'],
  mend: ['mend'],
};

/** Causes incidents: a router for `POST /incidents/{name}`, to be used after `apiClient(strategy)`. */
export class Incidents {
  readonly router: Router = Router();
  readonly #options: IncidentOptions;
  #storeMends: NodeJS.Timeout | undefined;

  constructor(options: IncidentOptions) {
    this.#options = options;
    this.router.post('/:name', async (req, res, next) => {
      const incident = findIncident(req.params.name);
      if (!incident) return next();
      const { grantId } = req.apiClient;
      if (!req.apiClient.authorized || grantId === undefined) return res.redirect(303, '/');
      const incidentAt = this.#options.clock();
      const verdict = await this.#cause(incident.name, grantId, req, res);
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

  async #cause(name: IncidentName, grantId: string, req: Request, res: Response): Promise<Verdict> {
    const { strategy, otherProcess, breakService, burst, journal, clock } = this.#options;
    const userId = req.user?.id;
    const refreshing = name === 'log-out' ? breakService('await-refresh', userId) : undefined;
    for (const fault of faults[name] ?? []) await breakService(fault, userId);
    if (name === 'unsaved') await this.#breakStore('writes', 10);
    if (name === 'store-down') await this.#breakStore('all', 15);
    if (name === 'mend') await this.#breakStore('none', 0);
    if (name === 'burst') {
      await burst(grantId, { burst: randomUUID(), userId, from: 1, count: callsOfBurst });
      return burstVerdict(latestBurst(journal.of(grantId).entries));
    }
    if (name === 'other-process') await otherProcess.client(grantId).projects();
    const refreshes: RefreshEvent[] = [];
    const stopHearing = hear(clock, ({ kind, event }) => {
      if (kind === 'refresh' && event.grantId === grantId) refreshes.push(event);
    });
    // The client of this request may have met what is mended now.
    const call = callApi(name === 'mend' ? strategy.client(grantId) : req.apiClient);
    if (name === 'log-out') {
      await refreshing;
      await promisify(logout(strategy))(req, res);
    }
    const outcome = await call;
    stopHearing();
    return verdictOf(name, { ...outcome, refreshes, isLoggedIn: req.apiClient.authorized });
  }

  async #breakStore(broken: Breakage, seconds: number): Promise<void> {
    const { breakStore } = this.#options;
    clearTimeout(this.#storeMends);
    await breakStore(broken);
    if (broken !== 'none') this.#storeMends = setTimeout(() => void breakStore('none'), seconds * 1000).unref();
  }
}

/** Makes one API call. Resolves to how long it took, and to its error. */
async function callApi(client: ApiClient): Promise<{ readonly durationMs: number; readonly error?: OAuthAppError }> {
  const startedAt = performance.now();
  const durationMs = () => performance.now() - startedAt;
  try {
    await client.projects();
    return { durationMs: durationMs() };
  } catch (error) {
    if (!(error instanceof OAuthAppError)) throw error;
    return { durationMs: durationMs(), error };
  }
}
