/**
 * The example application in two processes that share a Redis: `npm run start:cluster`.
 *
 * Sessions and grants are in Redis, and the emulated service is in the first process. Whatever the two do at once, a token is
 * refreshed by one of them; the panel shows which. REDIS_URL names a Redis that runs; without it, one is started.
 */
import cluster from 'node:cluster';
import { startPrimary } from './cluster/primary.js';
import { work } from './cluster/worker.js';
import { untilAskedToEnd } from './server.js';
import { isExpected, realService, SettingsError, serverSettings } from './settings.js';

async function main(): Promise<void> {
  if (cluster.isWorker) return work();
  if (realService(process.env))
    throw new SettingsError('The cluster runs with the emulated service: unset AUTH_URL and the others.');
  const { url, pids, close } = await startPrimary(serverSettings(process.env), process.env.REDIS_URL);
  const isAsked = untilAskedToEnd();
  process.stdout.write(`\n  Open ${url}\n\n  Processes ${pids.join(' and ')} answer. Ctrl-C ends everything.\n`);
  await isAsked;
  await close();
}

main().catch((error: unknown) => {
  if (!isExpected(error)) throw error;
  process.stderr.write(`${error.message}\n`);
  process.exit(1);
});
