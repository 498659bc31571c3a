import { startRedis } from '../lib/redis.mjs';
import { inTurns } from '../lib/rounds.mjs';
import { onStage } from '../lib/stage.mjs';
import { summary } from '../lib/statistics.mjs';

const MOST = 4;
const CONNECTIONS = 32;

/** From one to four processes of one application over one Redis, on the cores that there are. */
export async function processes({ rounds, share }) {
  const redis = await startRedis();
  try {
    return await onStage(async (stage) => {
      const service = await stage.service();
      const load = await stage.load();
      const options = { app: 'ours', service: service.ready, redisUrl: redis.url };
      const servers = await Promise.all(Array.from({ length: MOST }, () => stage.app(options)));
      const cookies = await load.ask('logIns', { port: servers[0].ready.port, users: 50 });
      const headers = cookies.map((Cookie) => ({ Cookie }));
      const contestants = servers.map((_server, index) => {
        const used = servers.slice(0, index + 1);
        return {
          name: String(index + 1),
          measure: () => together(used, load, { headers, requests: Math.round(3_000 * share) }),
        };
      });
      await inTurns(contestants, 2);
      const samples = await inTurns(contestants, rounds);
      const rows = Object.entries(samples).map(([count, own]) => ({
        processes: Number(count),
        perSecond: summary(own.map(({ perSecond }) => perSecond)),
        cpuUs: summary(own.map(({ cpuUs }) => cpuUs)),
      }));
      return { title: 'Several processes over one Redis', rows };
    });
  } finally {
    await redis.stop();
  }
}

async function together(servers, load, { headers, requests }) {
  const used = async () =>
    (await Promise.all(servers.map((server) => server.ask('usage')))).reduce((sum, { cpuUs }) => sum + cpuUs, 0);
  const before = await used();
  const ports = servers.map(({ ready }) => ready.port);
  const { durationMs, statuses } = await load.ask('run', {
    ports,
    path: '/',
    headers,
    requests,
    connections: CONNECTIONS,
  });
  if (statuses[200] !== requests) throw new Error(JSON.stringify(statuses));
  return { perSecond: (requests / durationMs) * 1000, cpuUs: ((await used()) - before) / requests };
}
