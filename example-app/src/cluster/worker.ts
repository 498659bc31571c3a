import { createServer } from 'node:http';
import { RedisStore } from 'connect-redis';
import { redisTokenStore } from 'passport-oauth-app/redis';
import { createClient } from 'redis';
import { createApp, createStrategy } from '../app.js';
import { hear } from '../panel/happening.js';
import { Journal } from '../panel/journal.js';
import { Panel } from '../panel/panel.js';
import { closeServer, listen } from '../server.js';
import type { Setup, ToPrimary, ToWorker } from './messages.js';

/** Answers requests as one of several processes, until the primary process says that it is over. */
export async function work(): Promise<void> {
  // Ctrl-C reaches all processes of a terminal; the primary one tells when to end.
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => {});
  const settingUp = received('setup');
  // What came before anybody listened would be lost.
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
  const tokenStore = redisTokenStore(redis);
  // The cache is short, so that the panel soon shows the token that the other process has got.
  const cache = { ttl: 1 };
  const strategy = createStrategy({ ...strategyOptions, tokenStore, cache, encryptionKeys: sessionSecret });
  const panel = new Panel({ journal: sharedJournal(), expireTokens });
  const sessionStore = new RedisStore({ client: redis });
  const server = createServer(createApp({ strategy, sessionSecret, sessionStore, secure: false, panel }));
  // A new connection for each request, so that a browser meets both processes.
  server.maxRequestsPerSocket = 1;
  await listen(server, port, '127.0.0.1');
  return async () => {
    panel.close();
    await closeServer(server);
    await strategy.close();
    await redis.close();
  };
}

/** A journal of what happens in all processes: this one tells the primary process, which tells all of them. */
function sharedJournal(): Journal {
  const journal = new Journal();
  hear((happening) => send({ kind: 'happening', happening }));
  process.on('message', (message: ToWorker) => {
    if (message.kind === 'entry') journal.add(message.entry);
  });
  return journal;
}

async function expireTokens(): Promise<void> {
  send({ kind: 'expire' });
  await received('expired');
}

/** The next message of this kind. */
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
