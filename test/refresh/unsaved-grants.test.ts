import { setImmediate as turn } from 'node:timers/promises';
import { expect, vi } from 'vitest';
import { stopTime } from '../support/stop-time.js';
import { threats } from '../support/threats.js';
import type { StoreMethod } from '../support/troubled-store.js';
import { until } from '../support/until.js';
import { type Grants, LIFETIME_S, pair, test, tokens } from './fixture.js';

/** How long a lock is held for a save at the most. */
const HOLD_MS = 15_000;

/** A grant that was refreshed while the store could not save it. */
async function unsaved({ store, use }: Grants): Promise<void> {
  store.fail('update');
  expect(await use()).toBe('access-1');
}

const calls = ({ store }: Grants, method: StoreMethod) => store.calls.filter((call) => call === method).length;
const outcomes = ({ events }: Grants) => events.map(({ outcome }) => outcome);

test('an unsaved grant is used from memory and saved by itself', async ({ expired: grants }) => {
  stopTime();
  await unsaved(grants);
  expect(grants.manager.current('id')).toMatchObject({ accessToken: 'access-1' });
  await until(() => expect(calls(grants, 'update')).toBeGreaterThan(2));
  grants.store.recover();
  await until(() => expect(outcomes(grants)).toEqual(['unsaved', 'saved']));
  expect(await grants.use(grants.another())).toBe('access-1');
});

test('an unsaved grant is saved with the first operation of the store that succeeds', async ({ expired: grants }) => {
  stopTime();
  await unsaved(grants);
  grants.store.recover();
  await grants.manager.put('another', tokens('another'));
  // No time has passed in which it is tried by itself.
  await turn();
  expect(outcomes(grants)).toEqual(['unsaved', 'saved']);
});

test('an unsaved grant is discarded if the store has another login by now', async ({ expired: grants }) => {
  await unsaved(grants);
  grants.store.recover();
  await grants.another().put('id', tokens('of-a-new-login'));
  await until(() => expect(outcomes(grants)).toEqual(['unsaved', 'discarded']));
  expect(await grants.use()).toBe('access-of-a-new-login');
});

test('an unsaved grant is kept if the login after it cannot be saved either', async ({ expired: grants }) => {
  await unsaved(grants);
  grants.store.fail('update', 'set');
  await expect(grants.manager.put('id', tokens('second'))).rejects.toThrow('The token store failed');
  expect(await grants.use()).toBe('access-1');
  grants.store.recover();
  await grants.manager.put('id', tokens('third'));
  expect(await grants.use()).toBe('access-third');
});

test('an unsaved grant survives twenty more refreshes whose saves fail too', async ({ expired: grants }) => {
  stopTime();
  await unsaved(grants);
  for (let count = 2; count <= 20; count++) {
    grants.clock.advance(LIFETIME_S);
    await vi.advanceTimersByTimeAsync(HOLD_MS);
    expect(await grants.use()).toBe(`access-${count}`);
  }
  grants.store.recover();
  await grants.manager.close();
  expect(outcomes(grants).at(-1)).toBe('saved');
  expect(await grants.use(grants.another())).toBe('access-20');
});

test.for([
  ['the wall clock is set forward', 0, LIFETIME_S],
  ['its lease would not last for a token request', 10_000, 0],
] as const)(
  'an unsaved grant keeps its lock, though %s',
  threats(64),
  async ([, requestMs, wallS], { expired: grants }) => {
    stopTime();
    grants.service.next(async (socket, request) => {
      await vi.advanceTimersByTimeAsync(requestMs);
      pair('new')(socket, request);
    });
    grants.store.fail('update');
    expect(await grants.use()).toBe('access-new');
    await vi.advanceTimersByTimeAsync(6_000);
    grants.clock.advance(wallS);
    const rival = grants.use(grants.another());
    await until(() => expect(calls(grants, 'lock')).toBe(2));
    const own = grants.manager.renew('id', 'access-new');
    await until(() => expect(calls(grants, 'lock')).toBe(3));
    grants.store.recover();
    await vi.advanceTimersByTimeAsync(HOLD_MS);
    await Promise.all([own, rival]);
    expect(grants.sent()).toEqual(['refresh-old', 'refresh-new']);
  },
);

test('an unsaved grant is tried once more before its lock is released', async ({ expired: grants }) => {
  stopTime();
  await unsaved(grants);
  await vi.advanceTimersByTimeAsync(14_000);
  grants.store.recover();
  const next = grants.use(grants.another());
  await vi.advanceTimersByTimeAsync(1_000);
  expect(await next).toBe('access-1');
  expect(grants.sent()).toEqual(['refresh-old']);
});

test('close() tries to save until the store works', async ({ expired: grants }) => {
  await unsaved(grants);
  const closed = grants.manager.close();
  const before = calls(grants, 'update');
  await until(() => expect(calls(grants, 'update')).toBeGreaterThan(before + 2));
  grants.store.recover();
  await closed;
  expect(await grants.use(grants.another())).toBe('access-1');
});
