import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import { RedisStore } from 'connect-redis';
import type { Strategy } from 'passport-oauth-app';
import { redisTokenStore } from 'passport-oauth-app/redis';
import { createClient } from 'redis';
import { createApp, createStrategy } from '../app.js';
import { BreakableStore } from '../incidents/breakable-store.js';
import { Incidents } from '../incidents/incidents.js';
import { runBurst } from '../panel/burst.js';
import { hear } from '../panel/happening.js';
import { Journal } from '../panel/journal.js';
import { Panel } from '../panel/panel.js';
import { closeServer, listen } from '../server.js';
import type { Setup, ToPrimary, ToWorker } from './messages.js';

/** Answers requests as one of several processes, until the primary process says that it is over. */
export async function work(): Promise<void> {
  // Ctrl-C reaches all processes of a terminal; the primary process decides when to end.
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => {});
  const settingUp = received('setup');
  // A message that came before the listener would be lost.
  send({ kind: 'hello' });
  const { setup } = await settingUp;
  const close = await serve(setup);
  send({ kind: 'ready' });
  await received('end');
  await close();
  process.disconnect();
}

async function serve({ port, redisUrl, sessionSecret, strategyOptions }: Setup): Promise<() => Promise<void>> {
  const redis = await createClient({ url: redisUrl }).on('error', console.error).connect();
  const store = new BreakableStore(redisTokenStore(redis));
  // Without a cache, the panel shows the token that the other process has got at once.
  const options = { ...strategyOptions, tokenStore: store, cache: false as const, encryptionKeys: sessionSecret };
  const strategy = createStrategy(options);
  const journal = sharedJournal(strategy, store);
  const incidents = new Incidents({
    strategy,
    otherProcess: createStrategy(options),
    breakStore: (broken) => ask({ kind: 'store', broken }),
    breakService: (fault, userId) => ask({ kind: 'fault', fault, userId }),
    burst: (grantId, order) => ask({ kind: 'burst', grantId, order }),
    journal,
    clock: Date.now,
  });
  const panel = new Panel({ journal, incidents, clock: Date.now });
  const sessionStore = new RedisStore({ client: redis });
  const server = createServer(createApp({ strategy, sessionSecret, sessionStore, secure: false, panel }));
  // A new connection for each request, so that a browser meets both processes.
  server.maxRequestsPerSocket = 1;
  await listen(server, port, '127.0.0.1');
  return async () => {
    panel.close();
    await closeServer(server);
    await incidents.close();
    await strategy.close();
    await redis.close();
  };
}

/** Returns the journal of all processes. Events go to the primary process, which sends the entries to all workers. */
function sharedJournal(strategy: Strategy, store: BreakableStore): Journal {
  const journal = new Journal();
  hear(Date.now, (happening) => send({ kind: 'happening', happening }));
  process.on('message', async (message: ToWorker) => {
    if (message.kind === 'entry') journal.add(message.entry);
    if (message.kind === 'store') store.broken = message.broken;
    if (message.kind !== 'burst') return;
    await runBurst(strategy.client(message.grantId), message.order);
    send({ kind: 'burst-done', burst: message.order.burst });
  });
  return journal;
}

type Request = Extract<ToPrimary, { readonly id: string }>;
type Unnumbered<One> = One extends Request ? Omit<One, 'id'> : never;

/** Resolves when the primary process has done it. */
function ask(request: Unnumbered<Request>): Promise<void> {
  const id = randomUUID();
  return new Promise((resolve) => {
    process.on('message', function take(message: ToWorker) {
      if (message.kind !== 'done' || message.id !== id) return;
      process.off('message', take);
      resolve();
    });
    send({ ...request, id } as Request);
  });
}

/** Resolves with the next message of this kind. */
function received<Kind extends ToWorker['kind']>(kind: Kind): Promise<Extract<ToWorker, { readonly kind: Kind }>> {
  return new Promise((resolve) => {
    process.on('message', function take(message: ToWorker) {
      if (!isOf(message, kind)) return;
      process.off('message', take);
      resolve(message);
    });
  });
}

function isOf<Kind extends ToWorker['kind']>(
  message: ToWorker,
  kind: Kind,
): message is Extract<ToWorker, { readonly kind: Kind }> {
  return message.kind === kind;
}

function send(message: ToPrimary): void {
  if (process.connected) process.send?.(message);
}
