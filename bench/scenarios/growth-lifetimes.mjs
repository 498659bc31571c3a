import { onStage } from '../lib/stage.mjs';
import { interval, quantile } from '../lib/statistics.mjs';

/** Seconds that an access token lives. */
const LIFETIMES = [60, 300, 1_800, 7_200, 28_800, 86_400];
const USERS = 100;
const CONNECTIONS = 32;
/** Each user asks every ten seconds, for an hour: time goes on in steps. */
const STEP_MS = 10_000;
const STEPS = 360;
/** About what a token endpoint in the same region takes. */
const TOKEN_DELAY_MS = 20;

/** CPU and latency of a request, and refreshes, by the lifetime of access tokens, in virtual time. */
export async function growthLifetimes({ quick }) {
  const rows = [];
  for (const lifetimeS of LIFETIMES) rows.push(await live(lifetimeS, quick ? STEPS / 12 : STEPS));
  return { title: 'An hour of a hundred users, by the lifetime of access tokens', users: USERS, rows };
}

function live(lifetimeS, steps) {
  return onStage(
    async (stage) => {
      const service = await stage.service({ lifetimeS, tokenDelayMs: TOKEN_DELAY_MS });
      const load = await stage.load();
      const server = await stage.app({ app: 'keyed', service: service.ready });
      await service.ask('seed', USERS);
      await server.ask('seed', { from: 1, to: USERS, withinMs: lifetimeS * 1000 });
      const headers = Array.from({ length: USERS }, (_none, index) => ({ 'x-user': String(index + 1) }));
      const task = { ports: [server.ready.port], path: '/', headers, requests: USERS, connections: CONNECTIONS };
      const step = async () => {
        const { statuses, latencies } = await load.ask('run', { ...task, keepLatencies: true });
        if (statuses[200] !== USERS) throw new Error(JSON.stringify(statuses));
        await server.ask('advance', STEP_MS);
        return latencies;
      };
      // No time passes: the code is compiled.
      for (let times = 0; times < 50; times += 1) await load.ask('run', task);
      await service.ask('stats');
      const latencies = [];
      const cpu = [];
      for (let done = 0; done < steps; done += 1) {
        const { cpuUs: before } = await server.ask('usage');
        latencies.push(...(await step()));
        cpu.push(((await server.ask('usage')).cpuUs - before) / USERS);
      }
      const { refreshed, refused } = await service.ask('stats');
      const hours = (steps * STEP_MS) / 3_600_000;
      return {
        lifetimeS,
        requests: latencies.length,
        refreshesPerUserHour: refreshed / USERS / hours,
        refused,
        cpuUs: interval(cpu),
        p50Ms: quantile(latencies, 0.5),
        p99Ms: quantile(latencies, 0.99),
        p999Ms: quantile(latencies, 0.999),
      };
    },
    { pinned: true },
  );
}
