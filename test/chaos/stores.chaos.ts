import { afterAll, expect, test } from 'vitest';
import { targets } from './servers.js';
import { type Figures, FROZEN_PAST_LEASE, processHarms, tryHarm } from './trial.js';

const rows: string[] = [];

afterAll(() => {
  const head =
    '| store | harm | requests | not answered with 200 | logins lost | token requests / rotations needed | slowest request |';
  process.stdout.write(`\n${[head, '|---|---|---|---|---|---|---|', ...rows].join('\n')}\n\n`);
});

/** `CHAOS=Redis HARM=SIGSTOP npm run chaos` tries only the stores, and only the harms, whose names contain this. */
const { CHAOS = '', HARM = '' } = process.env;
const chosen = Object.entries(targets).filter(([name]) => name.includes(CHAOS));

for (const [store, [isInstalled, start]] of chosen) {
  test.skipIf(!isInstalled)(`no login is lost over ${store}`, { timeout: 900_000 }, async () => {
    const probe = await start();
    await probe.stop();
    for (const name of Object.keys({ ...processHarms, ...probe.harms }).filter((each) => each.includes(HARM))) {
      // Servers of its own for each trial: a failover leaves fewer behind.
      const target = await start();
      try {
        const harm = target.harms[name] ?? processHarms[name];
        if (!harm) throw new Error(`unknown harm: ${name}`);
        const figures = await tryHarm(target, harm, name === FROZEN_PAST_LEASE ? 9000 : 3000);
        rows.push(rowOf(store, name, figures));
        process.stdout.write(`${rows.at(-1)}\n`);
        // A process that is killed between the service's answer and its save takes the new pair with it.
        if (name !== 'kill -9 of a process') expect.soft(figures.loginsLost, `logins lost by ${name}`).toBe(0);
      } finally {
        await target.stop();
      }
    }
  });
}

function rowOf(store: string, harm: string, figures: Figures): string {
  const { requests, unavailable, loginsLost, tokenRequests, rotationsNeeded, slowestMs } = figures;
  const rotations = `${tokenRequests} / ${rotationsNeeded}`;
  return `| ${store} | ${harm} | ${requests} | ${unavailable} | ${loginsLost} | ${rotations} | ${(slowestMs / 1000).toFixed(1)} s |`;
}
