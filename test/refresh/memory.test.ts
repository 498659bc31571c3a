import { randomUUID } from 'node:crypto';
import { expect, vi } from 'vitest';
import type { GrantManager } from '../../src/refresh/grant-manager.js';
import { json, reset } from '../support/faulty-server.js';
import { gate } from '../support/gate.js';
import { heldUuids } from '../support/heap.js';
import { until } from '../support/until.js';
import { type Grants, LIFETIME_S, pair, REFUSAL, test, tokens } from './fixture.js';

/** What happens to a grant whose access token expires in a minute. */
type Life = (manager: GrantManager, id: string, grants: Grants) => unknown;

/** The status of a failure. Vitest keeps what `rejects` was given until the test ends. */
const statusOf = async (grant: unknown) => {
  try {
    await grant;
  } catch (error) {
    return (error as { status: number }).status;
  }
};
const expire = ({ clock }: Grants) => clock.advance(60);
const unsaved: Life = async (manager, id, grants) => {
  expire(grants);
  grants.store.fail('update');
  await manager.current(id);
};

const LIVES: Readonly<Record<string, Life>> = {
  'a login and a logout': (manager, id) => manager.remove(id),
  'a refresh that two wait for': (manager, id, grants) => {
    expire(grants);
    return Promise.all([manager.current(id), manager.current(id)]);
  },
  'a read that took so long that another one began': async (manager, id, { store, clock }) => {
    clock.advance(-LIFETIME_S);
    const now = vi.spyOn(performance, 'now').mockReturnValue(0);
    const { opened, open } = gate();
    store.before = () => opened;
    const slow = manager.current(id);
    now.mockReturnValue(600);
    const quick = manager.current(id);
    store.recover();
    open();
    await Promise.all([slow, quick]);
    now.mockRestore();
  },
  'a refresh in the background': async (manager, id, { service }) => {
    await manager.current(id);
    await service.received(1);
    await until(async () => expect(await manager.current(id)).toMatchObject({ accessToken: 'access-1' }));
  },
  'a refresh after one that failed': async (manager, id, grants) => {
    expire(grants);
    grants.service.next(reset());
    expect(await statusOf(manager.current(id))).toBe(503);
    grants.clock.advance(1);
    await manager.current(id);
  },
  'a refresh in the background after one that failed': async (manager, id, { service, clock, events }) => {
    service.next(json({ error: 'invalid_client' }, 401));
    await manager.current(id);
    await until(() => expect(events).toHaveLength(1));
    clock.advance(1);
    await manager.current(id);
    await until(() => expect(events).toHaveLength(2));
  },
  'a refresh whose event is not taken, and one after it': async (manager, id, grants) => {
    expire(grants);
    const taken = vi.spyOn(grants.events, 'push').mockImplementationOnce(() => {
      throw Object.assign(new Error('The listener fails'), { status: 500 });
    });
    expect(await statusOf(manager.current(id))).toBe(500);
    grants.clock.advance(LIFETIME_S);
    expect(await manager.current(id)).toMatchObject({ accessToken: 'access-2' });
    taken.mockRestore();
  },
  'a refresh that the service refuses': async (manager, id, grants) => {
    expire(grants);
    grants.service.always(REFUSAL);
    expect(await statusOf(manager.current(id))).toBe(401);
  },
  'a logout during a refresh that fails': async (manager, id, grants) => {
    expire(grants);
    grants.service.next(async (socket, request) => {
      await manager.remove(id);
      reset()(socket, request);
    });
    expect(await statusOf(manager.current(id))).toBe(503);
  },
  'a logout during a refresh in the background': async (manager, id, { service, events }) => {
    service.next(async (socket, request) => {
      await manager.remove(id);
      pair('late')(socket, request);
    });
    await manager.current(id);
    await until(() => expect(events).toMatchObject([{ outcome: 'discarded' }]));
  },
  'a login during a refresh whose save fails': async (manager, id, grants) => {
    expire(grants);
    grants.service.next(async (socket, request) => {
      await manager.put(id, tokens('login'));
      grants.store.fail('update');
      pair('late')(socket, request);
    });
    expect(await manager.current(id)).toMatchObject({ accessToken: 'access-login' });
  },
  'a logout during a refresh whose save fails': async (manager, id, grants) => {
    expire(grants);
    grants.store.before = (method) => {
      if (method !== 'update') return;
      void manager.remove(id);
      throw new Error('The store fails');
    };
    await manager.current(id);
  },
  'a save that works later': async (manager, id, grants) => {
    await unsaved(manager, id, grants);
    grants.store.recover();
    await until(() => expect(grants.events).toMatchObject([{ outcome: 'unsaved' }, { outcome: 'saved' }]));
  },
  'a save that a login of another process overtakes': async (manager, id, grants) => {
    await unsaved(manager, id, grants);
    grants.store.recover();
    await grants.another({ cache: false }).put(id, tokens('of-a-new-login'));
    await until(() => expect(grants.events).toMatchObject([{ outcome: 'unsaved' }, { outcome: 'discarded' }]));
  },
  'a login after a refresh that was not saved': async (manager, id, grants) => {
    await unsaved(manager, id, grants);
    grants.store.recover();
    await manager.put(id, tokens('login'));
  },
  'an access token that the API refuses until it accepts a new one': async (manager, id) => {
    const renewed = await manager.renew(id, 'access-old');
    manager.reportOutcome(id, renewed, false);
    await manager.renew(id, renewed.accessToken);
    manager.reportOutcome(id, renewed, true);
  },
  'a logout while the API refuses the access token': async (manager, id) => {
    manager.reportOutcome(id, await manager.renew(id, 'access-old'), false);
    await manager.remove(id);
  },
};

test('nothing of a grant is in memory after its last request', async ({ startGrants }) => {
  const managers: GrantManager[] = [];
  /** In a function of its own, so that nothing of the test holds the id. */
  const comeAndGo = async (live: Life) => {
    const grants = await startGrants();
    const manager = grants.another({ cache: false });
    managers.push(manager);
    const id = randomUUID();
    await manager.put(id, tokens('old'));
    grants.clock.advance(LIFETIME_S - 60);
    await live(manager, id, grants);
    grants.store.recover();
    await manager.close();
    await grants.store.inner.delete(`oauth-app+${id}`);
    return Buffer.from(id);
  };
  const ids: [string, Buffer][] = [];
  for (const [life, live] of Object.entries(LIVES)) ids.push([life, await comeAndGo(live)]);
  const left = async () => {
    const held = await heldUuids();
    return ids.filter(([, id]) => held.has(id.toString())).map(([life]) => life);
  };
  await expect.poll(left).toEqual([]);
  // What would hold the ids is still there.
  for (const manager of managers) await expect(manager.current('none')).rejects.toMatchObject({ status: 401 });
});

test('what a manager has in memory is found: an id in its cache', async ({ grants }) => {
  const id = Buffer.from(randomUUID());
  const isHeld = async () => (await heldUuids()).has(id.toString());
  await grants.manager.put(id.toString(), tokens('old'));
  await grants.store.inner.delete(`oauth-app+${id}`);
  expect(await isHeld()).toBe(true);
  await grants.manager.remove(id.toString());
  await expect.poll(isHeld).toBe(false);
});
