import { createServer, type Server } from 'node:http';
import { memoryTokenStore, type StrategyOptions } from 'passport-oauth-app';
import type { Emulator } from 'passport-oauth-app/emulator';
import { createApp, createStrategy } from './app.js';
import { embeddedPages } from './embedded.js';
import { startService, strategyOptionsFor } from './emulated-service.js';
import { BreakableStore } from './incidents/breakable-store.js';
import { Incidents } from './incidents/incidents.js';
import { serviceBreaker } from './incidents/service-faults.js';
import { runBurst } from './panel/burst.js';
import { hear } from './panel/happening.js';
import { Journal } from './panel/journal.js';
import { Panel } from './panel/panel.js';
import { Recorder } from './panel/recorder.js';
import { closeServer, listen } from './server.js';
import type { ServerSettings } from './settings.js';

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
  const journal = new Journal();
  const recorder = new Recorder(clock);
  const stopHearing = hear(clock, (happening) => {
    const entry = recorder.record(happening);
    if (entry) journal.add(entry);
  });
  const service = realService ? undefined : await startService({ appPort: port, recorder, tokenLifetime, clock });
  const tokenStore = service && new BreakableStore(memoryTokenStore());
  const strategyOptions = {
    ...(service ? strategyOptionsFor(service) : realService),
    tokenStore,
    clock,
  } as StrategyOptions;
  const strategy = createStrategy(strategyOptions);
  const incidents =
    service &&
    tokenStore &&
    new Incidents({
      strategy,
      otherProcess: createStrategy({ ...strategyOptions, cache: false }),
      breakStore: (broken) => {
        tokenStore.broken = broken;
      },
      breakService: serviceBreaker(service),
      burst: (grantId, order) => runBurst(strategy.client(grantId), order),
      journal,
      clock,
    });
  const panel = new Panel({ journal, incidents, clock });
  const secure = realService?.callbackURL?.startsWith('https:') === true;
  const url = `http://localhost:${port}`;
  const embedded = service && embeddedPages(service, { ...strategyOptionsFor(service), clock }, url);
  const openToOperators = service !== undefined;
  const pages = { panel, embedded: embedded?.router, openToOperators };
  server.on('request', createApp({ strategy, sessionSecret, secure, ...pages }));
  const close = async () => {
    panel.close();
    await closeServer(server);
    await incidents?.close();
    await strategy.close();
    await embedded?.close();
    stopHearing();
    await service?.close();
  };
  return { url, service, close };
}
