import { setTimeout as pause } from 'node:timers/promises';
import { startChild } from '../lib/child.mjs';
import { onStage } from '../lib/stage.mjs';

const COUNTS = [10, 100, 1_000, 10_000];
const TOKEN_DELAY_MS = 20;

/** Refreshes ahead start 300 seconds before the expiry; of many grants, the last ones a while later. */
const FROM_S = 310;
const toS = (grants) => (grants < 10_000 ? 275 : 245);

/** So many grants that expire in the same second: what the token endpoint sees of it. */
export async function expiries({ quick }) {
  const rows = [];
  for (const grants of quick ? COUNTS.slice(0, 3) : COUNTS) rows.push(await expire(grants));
  return { title: 'Grants that expire in the same second', tokenDelayMs: TOKEN_DELAY_MS, rows };
}

function expire(grants) {
  return onStage(async (stage) => {
    const service = await stage.service();
    await service.ask('seed', grants);
    const process = await stage.keep(startChild('clients/expiring.mjs', { service: service.ready, grants }));
    await service.ask('delay', TOKEN_DELAY_MS);
    const { startedAt } = await process.ask('useBeforeExpiry', { fromS: FROM_S, toS: toS(grants) });
    await pause(500);
    const ahead = await service.ask('stats');
    const before = await process.ask('usage');
    const { durationMs, failures } = await process.ask('useAllAtOnce');
    const cpuUs = ((await process.ask('usage')).cpuUs - before.cpuUs) / grants;
    const atOnce = await service.ask('stats');
    return {
      grants,
      ahead: {
        refreshed: ahead.refreshed,
        mostPerSecond: mostPerSecond(ahead.times, startedAt),
        mostAtOnce: ahead.mostAtOnce,
      },
      expired: {
        refreshed: atOnce.refreshed,
        refused: atOnce.refused,
        mostAtOnce: atOnce.mostAtOnce,
        durationMs,
        failures,
        cpuUs,
      },
    };
  });
}

/** Most refreshes in one second. */
function mostPerSecond(times, startedAt) {
  const counts = new Map();
  for (const time of times) {
    const second = Math.floor((time - startedAt) / 1000);
    counts.set(second, (counts.get(second) ?? 0) + 1);
  }
  return Math.max(0, ...counts.values());
}
