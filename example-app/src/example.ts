import { createServer } from 'node:http';
import { memoryTokenStore, type StrategyOptions } from 'passport-oauth-app';
import { embeddedPages } from './embedded.js';
import { Recorder } from './panel/recorder.js';
import { createPrimary, type Worker } from './primary.js';
import { listen, type ServerSettings } from './server.js';
import { type ServiceOptions, startService, strategyOptionsFor } from './service.js';
import { startWorker } from './worker.js';

/** Options of `startExample`. */
export interface ExampleOptions extends ServerSettings, ServiceOptions {
  /** The real service; without it, an emulated one is started. */
  readonly realService?: StrategyOptions | undefined;
}

/** The running application. */
export type Example = Awaited<ReturnType<typeof startExample>>;

/**
 * Starts the application, and the emulated service unless there is a real one.
 *
 * @returns The address to be opened in a browser, the emulated service if there is one, and `close`, which lets what is under
 *   way finish and ends everything.
 * @throws {SettingsError} if the port is taken
 */
export async function startExample(options: ExampleOptions) {
  const { realService, sessionSecret, clock = Date.now } = options;
  const server = createServer();
  // With the emulated service it is for this computer only.
  const port = await listen(server, options.port, realService ? undefined : '127.0.0.1');
  const url = `http://localhost:${port}`;
  const recorder = new Recorder();
  const starting = realService ? undefined : startService(port, recorder, options);
  const service = await starting?.catch((error: unknown) => {
    server.close();
    throw error;
  });
  const strategyOptions = { ...(service ? strategyOptionsFor(service) : realService), clock } as StrategyOptions;
  const embedded = service && embeddedPages(service, strategyOptions, url);
  const tokenStore = service && memoryTokenStore();
  const workers: Worker[] = [];
  const primary = createPrimary(workers, recorder, service);
  const settings = { strategyOptions, sessionSecret, tokenStore, embedded: embedded?.router };
  const worker = startWorker({ server, primary, ...settings });
  workers.push(worker);
  const close = async () => {
    await worker.end();
    await embedded?.close();
    await service?.close();
  };
  return { url, service, close };
}
