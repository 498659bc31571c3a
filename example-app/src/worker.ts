import type { Server } from 'node:http';
import type { ListedTokenStore, StrategyOptions } from 'passport-oauth-app';
import { type AppOptions, createApp, createStrategy } from './app.js';
import { breakable, createIncidents } from './incidents/incidents.js';
import { runBurst } from './panel/burst.js';
import { hear, Journal } from './panel/journal.js';
import { createPanel } from './panel/panel.js';
import type { Primary, Worker } from './primary.js';
import { closeServer } from './server.js';

/** The surroundings of the application in one process. */
export interface WorkerOptions extends Pick<AppOptions, 'sessionSecret' | 'sessionStore' | 'embedded'> {
  /** Listens already, or soon. */
  readonly server: Server;
  readonly primary: Primary;
  readonly strategyOptions: StrategyOptions;
  /** The store that the incidents break; none with a real service. */
  readonly tokenStore?: ListedTokenStore | undefined;
}

/** Serves the application in this process, with the panel and the incidents. */
export function startWorker(options: WorkerOptions): Worker {
  const { server, primary, ...surroundings } = options;
  const { clock = Date.now, callbackURL } = options.strategyOptions;
  const breaking = options.tokenStore && breakable(options.tokenStore);
  const strategyOptions = { ...options.strategyOptions, tokenStore: breaking?.tokenStore };
  const strategy = createStrategy(strategyOptions);
  const journal = new Journal();
  const incidents = breaking && createIncidents(strategy, strategyOptions, primary, journal);
  const panel = createPanel(journal, incidents, clock);
  const secure = callbackURL?.startsWith('https:') === true;
  const openToOperators = incidents !== undefined;
  server.on('request', createApp({ ...surroundings, strategy, secure, panel: panel.router, openToOperators }));
  const stopHearing = hear(clock, (happening) => void primary.tell(happening));
  return {
    add: async (entry) => journal.add(entry),
    breakStore: async (working, seconds) => breaking?.breakStore(working, seconds),
    burst: (grantId, causes) => runBurst(strategy.client(grantId), causes),
    async end() {
      panel.close();
      await closeServer(server);
      // What is unsaved is saved when the strategy is closed.
      breaking?.breakStore([], 0);
      await strategy.close();
      stopHearing();
    },
  };
}
