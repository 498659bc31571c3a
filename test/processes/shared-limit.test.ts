import { type EmulatorOptions, startEmulator } from 'passport-oauth-app/emulator';
import { expect, test } from 'vitest';
import { Browser } from '../support/browser.js';
import { type Answer, Worker } from '../support/processes.js';
import { until } from '../support/until.js';
import { startWorld } from '../support/world.js';
import { openFleet, overEachStore, store } from './fleet.js';

const CALLS = 100;

const ask = (worker: Worker, count = CALLS): Promise<Answer[]> =>
  Promise.all(Array.from({ length: count }, () => worker.ask('1')));

const lost = (answers: readonly Answer[]) => answers.filter(({ status }) => status !== 200);

overEachStore('the 20 places of an account, in processes that share %s', {}, () => {
  let statuses: (number | string)[];

  async function startLimited(options: Pick<EmulatorOptions, 'latency'> = {}): Promise<readonly Worker[]> {
    statuses = [];
    const log: EmulatorOptions['log'] = ({ path, outcome }) => {
      if (path.endsWith('/projects')) statuses.push(outcome);
    };
    return (await openFleet({ concurrency: 20, latency: 20, log, ...options })).workers;
  }
  const refused = () => statuses.filter((status) => status === 429).length;

  test('are shared out: 4 × 100 calls lose none, and hardly any is refused', async () => {
    const workers = await startLimited();
    const answers = (await Promise.all(workers.map((worker) => ask(worker)))).flat();
    expect(lost(answers)).toEqual([]);
    expect(statuses.filter((status) => status === 200)).toHaveLength(400);
    expect(refused()).toBeLessThanOrEqual(20);
  });

  test('are all for one process that is alone, which tells the store seldom', async () => {
    const [worker] = await startLimited();
    expect(lost(await ask(worker as Worker))).toEqual([]);
    expect(refused()).toBe(0);
  });

  test('come back from a process that is killed', async () => {
    const [victim, ...others] = (await startLimited({ latency: 50 })) as [Worker, ...Worker[]];
    const abandoned = Promise.allSettled([ask(victim)]);
    const answers = Promise.all(others.map((worker) => ask(worker)));
    await until(() => expect(statuses.length).toBeGreaterThan(40));
    await victim.kill();
    expect(lost((await answers).flat())).toEqual([]);
    await abandoned;
    expect(lost(await ask(others[0] as Worker))).toEqual([]);
  });

  test('are guessed from refusals while the store is down, and no call is lost', async () => {
    const workers = await startLimited();
    // Each has the grant in its cache.
    await Promise.all(workers.map((worker) => ask(worker, 1)));
    await store.kill();
    const answers = (await Promise.all(workers.map((worker) => ask(worker)))).flat();
    await store.restart();
    expect(lost(answers)).toEqual([]);
  });
});

test('four processes with stores of their own lose no call of an account with 20 places', async () => {
  const service = await startEmulator({ concurrency: 20, latency: 20 });
  const world = await startWorld({ running: service, strategy: { grantId: () => '1' } });
  await world.logIn(new Browser());
  const memory = { accessToken: await world.strategy.client('1').accessToken() };
  const options = { ...service.options, concurrency: 20 };
  const workers = await Promise.all([1, 2, 3, 4].map(() => Worker.start({ memory }, options)));
  expect(lost((await Promise.all(workers.map((worker) => ask(worker)))).flat())).toEqual([]);
  await Promise.all(workers.map((worker) => worker.release()));
  await world.close();
  await service.close();
});
