import type { Server } from 'node:http';
import type { Router } from 'express';
import type { Store } from 'express-session';
import type { ListedTokenStore, StrategyOptions } from 'passport-oauth-app';
import { createApp, createStrategy } from './app.js';
import { breakable, createIncidents } from './incidents/incidents.js';
import { runBurst } from './panel/burst.js';
import { hear, Journal } from './panel/journal.js';
import { createPanel } from './panel/panel.js';
import type { Primary, Worker } from './primary.js';
import { closeServer } from './server.js';

/** The surroundings of the application in one process. */
export interface WorkerOptions {
  /** Listens already, or soon. */
  readonly server: Server;
  readonly primary: Primary;
  readonly strategyOptions: StrategyOptions;
  readonly sessionSecret: string;
  readonly sessionStore?: Store | undefined;
  /** The store that the incidents break; none with a real service. */
  readonly tokenStore?: ListedTokenStore | undefined;
  readonly embedded?: Router | undefined;
  readonly clock: () => number;
}

/** Serves the application in this process, with the panel and the incidents. */
export function startWorker(options: WorkerOptions): Worker {
  const { server, primary, clock, embedded, sessionSecret, sessionStore } = options;
  const tokenStore = options.tokenStore && breakable(options.tokenStore);
  const strategyOptions = { ...options.strategyOptions, tokenStore };
  const strategy = createStrategy(strategyOptions);
  const otherProcess = createStrategy({ ...strategyOptions, cache: false });
  const journal = new Journal();
  const incidents = tokenStore && createIncidents({ strategy, otherProcess, primary, journal, clock });
  const panel = createPanel({ journal, incidents: incidents?.router, clock });
  const secure = strategyOptions.callbackURL?.startsWith('https:') === true;
  const pages = { panel: panel.router, embedded, openToOperators: incidents !== undefined };
  server.on('request', createApp({ strategy, sessionSecret, sessionStore, secure, ...pages }));
  const stopHearing = hear(clock, (happening) => void primary.tell(happening));
  return {
    add: async (entry) => journal.add(entry),
    breakStore: async (broken) => tokenStore?.break(broken),
    burst: (grantId, order) => runBurst(strategy.client(grantId), order),
    async end() {
      panel.close();
      await closeServer(server);
      await incidents?.close();
      await Promise.all([strategy.close(), otherProcess.close()]);
      stopHearing();
    },
  };
}
