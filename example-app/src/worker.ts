import { createServer } from 'node:http';
import { RedisStore } from 'connect-redis';
import type { StrategyOptions } from 'passport-oauth-app';
import { redisTokenStore } from 'passport-oauth-app/redis';
import { createClient } from 'redis';
import { connect } from './calls.js';
import { type Show, startShow } from './example.js';
import type { Breakage, IncidentOptions } from './incidents/incidents.js';
import { type BurstOrder, runBurst } from './panel/burst.js';
import { type Entry, type Happening, hear, Journal } from './panel/journal.js';
import { listen } from './server.js';

/** The settings of a worker. */
export interface Setup {
  readonly port: number;
  readonly redisUrl: string;
  readonly sessionSecret: string;
  readonly strategyOptions: StrategyOptions;
}

/** What the primary process asks of a worker. */
export interface WorkerCalls {
  add(entry: Entry): Promise<void>;
  breakStore(broken: Breakage): Promise<void>;
  burst(grantId: string, order: BurstOrder): Promise<void>;
  end(): Promise<void>;
}

/** What a worker asks of the primary process, which does it for all of them. */
export interface PrimaryCalls extends Pick<IncidentOptions, 'breakService' | 'breakStore' | 'burst'> {
  setup(): Promise<Setup>;
  tell(happening: Happening): Promise<void>;
}

/** Answers requests as one of several processes, until the primary process says that it is over. */
export function work(): void {
  // Ctrl-C reaches all processes of a terminal; the primary process decides when to end.
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => {});
  const journal = new Journal();
  const own: WorkerCalls = {
    add: async (entry) => journal.add(entry),
    breakStore: async (broken) => (await show).breakStore(broken),
    burst: async (grantId, order) => runBurst((await show).strategy.client(grantId), order),
    async end() {
      await (await show).close();
      process.disconnect();
    },
  };
  const primary = connect<PrimaryCalls>(process, own);
  const show = primary.setup().then((setup) => serve(setup, journal, primary));
  hear(Date.now, (happening) => void primary.tell(happening));
}

async function serve(setup: Setup, journal: Journal, primary: PrimaryCalls): Promise<Show> {
  const { port, redisUrl, sessionSecret, strategyOptions } = setup;
  const redis = await createClient({ url: redisUrl }).on('error', console.error).connect();
  const server = createServer();
  // A new connection for each request, so that a browser meets both processes.
  server.maxRequestsPerSocket = 1;
  const { breakService, breakStore, burst } = primary;
  const show = startShow({
    server,
    // Without a cache, the panel shows the token that the other process has got at once.
    strategyOptions: { ...strategyOptions, cache: false, encryptionKeys: sessionSecret },
    sessionSecret,
    sessionStore: new RedisStore({ client: redis }),
    journal,
    clock: Date.now,
    breaks: { tokenStore: redisTokenStore(redis), breakService, breakStore, burst },
  });
  await listen(server, port, '127.0.0.1');
  const close = async () => {
    await show.close();
    await redis.close();
  };
  return { ...show, close };
}
