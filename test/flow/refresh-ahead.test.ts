import { expect, test } from 'vitest';
import { listen } from '../support/event-log.js';
import { hold } from '../support/hold.js';
import { clock, loggedIn, projects, world } from '../support/one-world.js';
import { until } from '../support/until.js';

const HOURS = 3600;

test('lets no request wait under steady load across several expiries: not one finds the token expired', async () => {
  await loggedIn();
  const events = listen('refresh');
  for (let second = 0; second < 6 * HOURS; second += 240) {
    clock.advance(240);
    expect((await projects()).status).toBe(200);
  }
  expect(new Set(events.values('refresh', 'trigger'))).toEqual(new Set(['ahead']));
  expect(new Set(events.values('refresh', 'outcome'))).toEqual(new Set(['refreshed']));
  expect(world.tokenRequests()).toHaveLength(3);
});

test('does not delay requests while the token endpoint hangs', async () => {
  await loggedIn();
  clock.advance(2 * HOURS - 120);
  const release = hold(world.service, 'token');
  const { service } = world;
  const answered: number[] = [];
  for (let index = 0; index < 5; index++) {
    expect((await projects()).status).toBe(200);
    answered.push(service.requests.filter(({ path }) => path.startsWith('/api')).length);
  }
  // All five were served with the old token, before the refresh that the first one began came to its end.
  const used = new Set(
    service.requests.filter(({ path }) => path.startsWith('/api')).map(({ headers }) => headers.authorization),
  );
  expect(answered).toEqual([1, 2, 3, 4, 5]);
  expect(used.size).toBe(1);
  await until(() => expect(world.tokenRequests()).toHaveLength(1));
  release();
  const before = [...used][0];
  await until(async () => {
    await projects();
    expect(service.requests.at(-1)?.headers.authorization).not.toBe(before);
  });
});

test('starts one refresh for all requests of that time', async () => {
  await loggedIn();
  clock.advance(2 * HOURS - 100);
  const pages = await Promise.all(Array.from({ length: 30 }, projects));
  expect(pages.every(({ status }) => status === 200)).toBe(true);
  await until(() => expect(world.tokenRequests()).toHaveLength(1));
});

test('starts with the first request within `ahead`, and not before', async () => {
  await loggedIn();
  clock.advance(2 * HOURS - 301);
  await projects();
  expect(world.tokenRequests()).toEqual([]);
  clock.advance(1);
  await projects();
  await until(() => expect(world.tokenRequests()).toHaveLength(1));
});

test.each([2, 10, 60, 600])(
  'takes a shorter window for tokens that live %i s, and still none is waited for',
  async (lifetime) => {
    await loggedIn({ service: { accessTokenLifetime: lifetime } });
    const events = listen('refresh');
    for (let step = 0; step < 24; step++) {
      clock.advance(lifetime / 8);
      expect((await projects()).status).toBe(200);
    }
    expect(new Set(events.values('refresh', 'trigger'))).toEqual(new Set(['ahead']));
    // Three lifetimes, of which the last quarter or so is left out each time.
    expect(world.tokenRequests().length).toBeGreaterThanOrEqual(3);
    expect(world.tokenRequests().length).toBeLessThanOrEqual(5);
  },
);
