import { createServer, type Server } from 'node:http';
import type { Router } from 'express';
import type { Store } from 'express-session';
import { type ListedTokenStore, memoryTokenStore, type Strategy, type StrategyOptions } from 'passport-oauth-app';
import type { Emulator } from 'passport-oauth-app/emulator';
import { createApp, createStrategy } from './app.js';
import { embeddedPages } from './embedded.js';
import { type Breakage, breakable, type IncidentOptions, Incidents } from './incidents/incidents.js';
import { runBurst } from './panel/burst.js';
import { hear, Journal } from './panel/journal.js';
import { Panel } from './panel/panel.js';
import { Recorder } from './panel/recorder.js';
import { closeServer, listen, type ServerSettings } from './server.js';
import { serviceBreaker, startService, strategyOptionsFor } from './service.js';

/** Options of `startExample`. */
export interface ExampleOptions extends ServerSettings {
  /** The real service; without it, an emulated one is started. */
  readonly realService?: StrategyOptions | undefined;
  /** Seconds that an access token of the emulated service lives. */
  readonly tokenLifetime?: number | undefined;
  /** The clock of the application and of the emulated service, in epoch milliseconds. */
  readonly clock?: (() => number) | undefined;
}

/** The running application. */
export interface Example {
  /** To be opened in a browser. */
  readonly url: string;
  /** The emulated service; `undefined` with a real one. */
  readonly service: Emulator | undefined;
  /** Lets what is under way finish, and ends everything. */
  close(): Promise<void>;
}

/**
 * Starts the application, and the emulated service unless there is a real one.
 *
 * @throws {SettingsError} if the port is taken
 */
export async function startExample(options: ExampleOptions): Promise<Example> {
  const server = createServer();
  // With the emulated service it is for this computer only.
  const port = await listen(server, options.port, options.realService ? undefined : '127.0.0.1');
  try {
    return await serve(server, port, options);
  } catch (error) {
    server.close();
    throw error;
  }
}

async function serve(server: Server, port: number, options: ExampleOptions): Promise<Example> {
  const { realService, sessionSecret, tokenLifetime, clock = Date.now } = options;
  const url = `http://localhost:${port}`;
  const journal = new Journal();
  const recorder = new Recorder(clock);
  const service = realService ? undefined : await startService({ port, recorder, tokenLifetime, clock });
  const strategyOptions = { ...(service ? strategyOptionsFor(service) : realService), clock } as StrategyOptions;
  const embedded = service && embeddedPages(service, strategyOptions, url);
  const breaks = service && { tokenStore: memoryTokenStore(), breakService: serviceBreaker(service) };
  const show = startShow({
    server,
    strategyOptions,
    sessionSecret,
    journal,
    clock,
    breaks,
    embedded: embedded?.router,
  });
  const stopHearing = hear(clock, (happening) => {
    const entry = recorder.record(happening);
    if (entry) journal.add(entry);
  });
  const close = async () => {
    await show.close();
    await embedded?.close();
    stopHearing();
    await service?.close();
  };
  return { url, service, close };
}

/** The surroundings of the application in one process. */
export interface ShowOptions {
  /** Listens already, or soon. */
  readonly server: Server;
  readonly strategyOptions: StrategyOptions;
  readonly sessionSecret: string;
  readonly sessionStore?: Store | undefined;
  readonly journal: Journal;
  readonly clock: () => number;
  readonly embedded?: Router | undefined;
  /** The parts that the incidents break; none with a real service. */
  readonly breaks?:
    | (Pick<IncidentOptions, 'breakService'> & Partial<IncidentOptions> & { readonly tokenStore: ListedTokenStore })
    | undefined;
}

/** The application in one process, with all that shows what it does. */
export interface Show {
  readonly strategy: Strategy;
  /** Breaks the token store of this process. */
  breakStore(broken: Breakage): Promise<void>;
  close(): Promise<void>;
}

/** Serves the application, with the panel and the incidents. */
export function startShow(options: ShowOptions): Show {
  const { server, journal, clock, breaks, embedded, sessionSecret, sessionStore } = options;
  const tokenStore = breaks && breakable(breaks.tokenStore);
  const strategyOptions = { ...options.strategyOptions, tokenStore };
  const strategy = createStrategy(strategyOptions);
  const breakStore = async (broken: Breakage) => {
    if (tokenStore) tokenStore.broken = broken;
  };
  const incidents =
    breaks &&
    new Incidents({
      strategy,
      otherProcess: createStrategy({ ...strategyOptions, cache: false }),
      breakStore,
      burst: (grantId, order) => runBurst(strategy.client(grantId), order),
      journal,
      clock,
      ...breaks,
    });
  const panel = new Panel({ journal, incidents: incidents?.router, clock });
  const secure = strategyOptions.callbackURL?.startsWith('https:') === true;
  const pages = { panel: panel.router, embedded, openToOperators: breaks !== undefined };
  server.on('request', createApp({ strategy, sessionSecret, sessionStore, secure, ...pages }));
  const close = async () => {
    panel.close();
    await closeServer(server);
    await incidents?.close();
    await strategy.close();
  };
  return { strategy, breakStore, close };
}
