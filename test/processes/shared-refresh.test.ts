import { expect, test } from 'vitest';
import { hold } from '../support/hold.js';
import type { Answer, Worker } from '../support/processes.js';
import { storeId } from '../support/store-id.js';
import { threats } from '../support/threats.js';
import { until } from '../support/until.js';
import { type Fleet, openFleet, overEachStore, store } from './fleet.js';

const HOURS = 3600;

overEachStore('processes that share %s', threats(43, 44, 46, 47, 48), () => {
  const ask = (worker: Worker, count: number): Promise<Answer[]> =>
    Promise.all(Array.from({ length: count }, () => worker.ask('1')));

  test('make one token request for 400 requests of four processes, and none fails; twice in a row', async () => {
    const fleet = await openFleet();
    for (let round = 1; round <= 2; round++) {
      await fleet.advance(2 * HOURS);
      const answers = (await Promise.all(fleet.workers.map((worker) => ask(worker, 100)))).flat();
      expect(answers.filter(({ status }) => status !== 200)).toEqual([]);
      expect(new Set(answers.map(({ text }) => text)).size).toBe(1);
      expect(fleet.tokenRequests()).toBe(round);
      keepTokenRequests(fleet);
    }
  });

  test(
    'make one token request for a grant of the application, at its first use and at its end',
    threats(86),
    async () => {
      const strategy = { applicationParameters: { grant_type: 'client_credentials' } };
      const fleet = await openFleet({ strategy });
      const everyone = async () => {
        const answers = await Promise.all(fleet.workers.flatMap((worker) => [worker.ask('m'), worker.ask('m')]));
        expect(answers.filter(({ status }) => status !== 200)).toEqual([]);
        return new Set(answers.map(({ text }) => text)).size;
      };
      expect([await everyone(), fleet.tokenRequests()]).toEqual([1, 1]);
      await fleet.advance(3 * HOURS);
      expect([await everyone(), fleet.tokenRequests()]).toEqual([1, 2]);
    },
  );

  test('read again before they refresh, if they come late with an old pair', async () => {
    const fleet = await openFleet({ processes: 2 });
    const [first, second] = fleet.workers as [Worker, Worker];
    // Both have the pair in their cache.
    await Promise.all([first.ask('1'), second.ask('1')]);
    await fleet.advance(2 * HOURS);
    const { text } = await first.ask('1');
    expect(await second.ask('1')).toEqual({ status: 200, text });
    expect(fleet.tokenRequests()).toBe(1);
  });

  test('go on within the lease when its holder is killed in the middle of a refresh', async () => {
    const fleet = await openFleet({ lease: 2 });
    const [holder, ...others] = fleet.workers as [Worker, ...Worker[]];
    await fleet.advance(2 * HOURS);
    fleet.service.fail('token', { hang: true });
    const lost = holder.ask('1').catch(() => undefined);
    await until(() => expect(fleet.tokenRequests()).toBe(1));
    const waiting = Promise.all(others.map((worker) => ask(worker, 20)));
    await holder.kill();
    await lost;
    const answers = (await waiting).flat();
    expect(answers.filter(({ status }) => status !== 200)).toEqual([]);
    expect(fleet.tokenRequests()).toBe(2);
  });

  test('lose one login at worst when one of them is killed between the answer and its save', async () => {
    const fleet = await openFleet({ users: ['1', '2'], lease: 2 });
    const [holder, ...others] = fleet.workers as [Worker, ...Worker[]];
    await fleet.advance(2 * HOURS);
    fleet.service.fail('token', { afterEffect: true, hang: true });
    const lost = holder.ask('1').catch(() => undefined);
    await until(() => expect(fleet.tokenRequests()).toBe(1));
    await holder.kill();
    await lost;
    const answers = (await Promise.all(others.map((worker) => ask(worker, 10)))).flat();
    expect(answers.every(({ status }) => status === 401)).toBe(true);
    // One refusal for each that asked, at the most, and no loop.
    expect(fleet.tokenRequests()).toBeLessThanOrEqual(1 + others.length);
    // A mark stays, without tokens.
    const { sealed = '' } = (await store.tokenStore.get(storeId(fleet.service.options, '1'))) ?? {};
    expect(Buffer.from(sealed, 'base64url').toString()).not.toMatch(/token/i);
    for (const worker of others) expect((await worker.ask('2')).status).toBe(200);
  });

  test.each(['refuse', 'grace'] as const)(
    'refuse the late write of a holder that was frozen past its lease (a service that answers it with: %s)',
    async (refreshTokenReuse) => {
      const fleet = await openFleet({ processes: 2, lease: 2, refreshTokenReuse });
      const [holder, other] = fleet.workers as [Worker, Worker];
      await fleet.advance(2 * HOURS);
      const release = hold(fleet.service, 'token');
      const late = holder.ask('1');
      await until(() => expect(fleet.tokenRequests()).toBe(1));
      holder.signal('SIGSTOP');
      const answer = await other.ask('1');
      expect(answer.status).toBe(200);
      const record = await store.tokenStore.get(storeId(fleet.service.options, '1'));
      release();
      holder.signal('SIGCONT');
      // It goes on with the pair of the one that was faster, and leaves it where it is.
      expect(await late).toEqual(answer);
      expect(await store.tokenStore.get(storeId(fleet.service.options, '1'))).toEqual(record);
      await fleet.advance(2 * HOURS);
      expect((await ask(holder, 5)).every(({ status }) => status === 200)).toBe(true);
      expect(fleet.tokenRequests()).toBe(3);
    },
  );

  test('lose no user and no token when it is killed and started again under load, and serve valid tokens throughout', async () => {
    const steady = ['1', '2', '3'];
    const fleet = await openFleet({ processes: 2, users: steady, lease: 2 });
    const [first, second] = fleet.workers as [Worker, Worker];
    await Promise.all(fleet.workers.flatMap((worker) => steady.map((user) => worker.ask(user))));
    const answers: Answer[] = [];
    let isLoaded = true;
    const load = fleet.workers.map(async (worker) => {
      while (isLoaded) answers.push(...(await Promise.all(steady.map((user) => worker.ask(user)))));
    });
    await store.kill();
    const served = answers.length;
    await until(() => expect(answers.length).toBeGreaterThan(served + 100));
    await store.restart();
    const again = answers.length;
    await until(() => expect(answers.length).toBeGreaterThan(again + 100));
    isLoaded = false;
    await Promise.all(load);
    expect(answers.filter(({ status }) => status !== 200)).toEqual([]);
    // A refresh that is under way when it is killed: the pair is used from memory, and saved when it is back.
    await fleet.advance(2 * HOURS);
    const release = hold(fleet.service, 'token');
    const rotated = first.ask('1');
    await until(() => expect(fleet.tokenRequests()).toBe(1));
    await store.kill();
    release();
    expect((await rotated).status).toBe(200);
    expect((await second.ask('1')).status).toBe(503);
    await store.restart();
    const { text } = await rotated;
    await until(async () => expect(await second.ask('1')).toEqual({ status: 200, text }));
    for (const user of steady) {
      await until(async () => expect((await second.ask(user)).status).toBe(200));
    }
    expect(fleet.tokenRequests()).toBeLessThanOrEqual(4);
  });

  test('lose no pair when one of them ends by a signal in the middle of a refresh', async () => {
    const fleet = await openFleet({ processes: 2 });
    const [leaving, staying] = fleet.workers as [Worker, Worker];
    await fleet.advance(2 * HOURS);
    fleet.service.fail('token', { delay: 300 });
    const last = leaving.ask('1').catch(() => undefined);
    await until(() => expect(fleet.tokenRequests()).toBe(1));
    await leaving.close();
    await last;
    expect((await staying.ask('1')).status).toBe(200);
    expect(fleet.tokenRequests()).toBe(1);
  });
});

/** The API calls of a round are of no interest; all of them would be kept in memory. */
function keepTokenRequests({ service: { requests } }: Fleet): void {
  const kept = requests.filter(({ path }) => path === '/oauth/token');
  requests.length = 0;
  requests.push(...kept);
}
