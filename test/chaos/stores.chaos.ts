import { afterAll, expect, test } from 'vitest';
import { removeFormerVersion } from './former-version.js';
import { targets } from './servers.js';
import { rowOf, writeTable } from './table.js';
import { processHarms, tryHarm } from './trial.js';

/** `CHAOS=Redis HARM=SIGSTOP npm run chaos` tries only the stores, and only the harms, whose names contain this. */
const { CHAOS = '', HARM = '' } = process.env;
const rows: string[] = [];

afterAll(async () => {
  removeFormerVersion();
  if (process.env.REPLICAS === undefined) await writeTable(rows);
});

for (const [store, [isInstalled, start]] of Object.entries(targets).filter(([name]) => name.includes(CHAOS))) {
  test.skipIf(!isInstalled)(`no login is lost over ${store}`, { timeout: 900_000 }, async () => {
    const probe = await start();
    await probe.stop();
    // A process is harmed in the same way whatever client package it uses.
    const harms = { ...(store.includes('ioredis') ? {} : processHarms), ...probe.harms };
    for (const harm of Object.keys(harms).filter((name) => name.includes(HARM))) {
      // Servers of its own for each trial: a failover leaves fewer behind.
      const target = await start();
      try {
        const figures = await tryHarm(target, harm);
        rows.push(rowOf(store, harm, figures));
        process.stdout.write(`${rows.at(-1)}\n`);
        expect.soft(figures.loginsLost, `logins lost by ${harm}`).toBe(0);
      } finally {
        await target.stop();
      }
    }
  });
}
