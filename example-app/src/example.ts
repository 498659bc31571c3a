import { createServer } from 'node:http';
import { memoryTokenStore, type StrategyOptions } from 'passport-oauth-app';
import type { Emulator } from 'passport-oauth-app/emulator';
import { embeddedPages } from './embedded.js';
import { Recorder } from './panel/recorder.js';
import { createPrimary, type Worker } from './primary.js';
import { listen, type ServerSettings } from './server.js';
import { type ServiceOptions, startService, strategyOptionsFor } from './service.js';
import { startWorker } from './worker.js';

/** Options of `startExample`. */
export interface ExampleOptions extends ServerSettings, Pick<ServiceOptions, 'tokenLifetime' | 'clock'> {
  /** The real service; without it, an emulated one is started. */
  readonly realService?: StrategyOptions | undefined;
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
  const { realService, sessionSecret, tokenLifetime, clock = Date.now } = options;
  const server = createServer();
  // With the emulated service it is for this computer only.
  const port = await listen(server, options.port, realService ? undefined : '127.0.0.1');
  const url = `http://localhost:${port}`;
  const recorder = new Recorder(clock);
  try {
    const service = realService ? undefined : await startService({ port, recorder, tokenLifetime, clock });
    const strategyOptions = { ...(service ? strategyOptionsFor(service) : realService), clock } as StrategyOptions;
    const embedded = service && embeddedPages(service, strategyOptions, url);
    const workers: Worker[] = [];
    const primary = createPrimary(workers, recorder, service);
    const tokenStore = service && memoryTokenStore();
    const surroundings = { strategyOptions, sessionSecret, tokenStore, embedded: embedded?.router, clock };
    workers.push(startWorker({ server, primary, ...surroundings }));
    const close = async () => {
      for (const worker of workers) await worker.end();
      await embedded?.close();
      await service?.close();
    };
    return { url, service, close };
  } catch (error) {
    server.close();
    throw error;
  }
}
