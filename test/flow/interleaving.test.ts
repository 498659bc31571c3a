import { setImmediate as turn } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { Browser } from '../support/browser.js';
import { open, world } from '../support/one-world.js';
import { orSample } from '../support/sample.js';
import { storeId } from '../support/store-id.js';
import { TestClock } from '../support/test-clock.js';
import { threats } from '../support/threats.js';
import { TroubledStore } from '../support/troubled-store.js';
import { byUser } from '../support/world.js';

const USERS = ['1', '2', '3', '4'];
const AT_ONCE = 12;

/** One user's state, as the test knows it. */
interface Person {
  readonly id: string;
  browser: Browser;
  isIn: boolean;
  /** Changes whenever a login or logout begins or ends. */
  moves: number;
  isMoving: boolean;
}

/** Numbers from 0 up to 1 that are the same for a seed (mulberry32). */
function randomFrom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

const subjectOf = (token: string): unknown =>
  JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString()).sub;
const tokenOf = ({ id }: Person) => world.strategy.client(id).accessToken();
const isOut = (error: { status?: number }) => error.status === 401;

async function move(person: Person, to: 'in' | 'out'): Promise<void> {
  if (person.isMoving) return;
  person.isMoving = true;
  person.moves += 1;
  if (to === 'in') {
    // The token endpoint may fail in the middle of it.
    do person.browser = new Browser();
    while ((await world.logIn(person.browser, person.id)).status !== 302);
  } else await person.browser.visit(`${world.url}/logout`, { method: 'POST' });
  person.isIn = to === 'in';
  person.isMoving = false;
  person.moves += 1;
}

/** A request: whoever is known to be out gets nothing, whoever is known to be in gets a token of their own. */
async function request(person: Person, hasFaults: boolean): Promise<void> {
  const { isMoving, isIn, moves } = person;
  const outcome = await tokenOf(person).catch((error: { status?: number }) => error);
  if (typeof outcome === 'string') expect(subjectOf(outcome)).toBe(person.id);
  if (isMoving || person.moves !== moves) return;
  if (!isIn) expect(outcome).toMatchObject({ status: 401 });
  else if (!hasFaults) expect(outcome).toBeTypeOf('string');
  else expect(typeof outcome === 'string' || !isOut(outcome)).toBe(true);
}

/** All of them for `npm run simulate`; a sample in a usual run of the tests. */
const isWhole = process.env.SIMULATE === 'whole';

describe('random interleavings', threats(50), () => {
  test.each([
    [1, isWhole ? 10_000 : orSample(800, 300), false],
    [4, isWhole ? 5_000 : orSample(600, 300), true],
  ])(
    'logins, logouts and refreshes interleaved at random deliver nothing to another user and bring nothing back (seed %i, %i steps, faults: %s)',
    async (seed, steps, hasFaults) => {
      const random = randomFrom(seed);
      const clock = new TestClock();
      const store = new TroubledStore();
      store.before = async (method) => {
        for (let turns = Math.floor(random() * 4); turns > 0; turns--) await turn();
        if (hasFaults && method === 'update' && random() < 0.1) throw new Error('The store fails');
      };
      await open({
        service: { clock: clock.now, users: USERS.map((id) => ({ id, name: id })), keepRequests: 0 },
        strategy: { clock: clock.now, tokenStore: store, grantId: byUser },
      });
      const people = USERS.map(
        (id): Person => ({ id, browser: new Browser(), isIn: false, moves: 0, isMoving: false }),
      );
      const anyone = () => people[Math.floor(random() * people.length)] as Person;
      let jumps = 0;
      /** A login that takes minutes is refused, so that time passes between logins only. */
      const jump = async (): Promise<void> => {
        jumps += 1;
        while (people.some(({ isMoving }) => isMoving)) await turn();
        clock.advance(7_200 * random());
        jumps -= 1;
      };
      const step = async (): Promise<void> => {
        const dice = random();
        if (dice < 0.04) await move(anyone(), 'out');
        else if (dice < 0.1 && jumps === 0) await move(anyone(), 'in');
        else if (dice < 0.2) await jump();
        else if (dice < 0.21 && hasFaults) world.service.fail('token', { status: 503 });
        else await request(anyone(), hasFaults);
      };
      let left = steps;
      const run = async () => {
        while (left-- > 0) {
          // Steps are spread over the event loop, or most of them would find all others standing still.
          for (let turns = Math.floor(random() * 6); turns > 0; turns--) await turn();
          await step();
        }
      };
      await Promise.all(Array.from({ length: AT_ONCE }, run));
      expect(store.calls.filter((call) => call === 'update').length).toBeGreaterThan(steps / 100);
      expect(people.every(({ moves }) => moves > steps / 1_000)).toBe(true);
      for (const person of people) {
        if (person.isIn) await move(person, 'out');
        await expect(tokenOf(person)).rejects.toMatchObject({ status: 401 });
        expect(await store.inner.get(storeId(world.service.options, String(person.id)))).toBeUndefined();
      }
      // Nothing is left of them that would harm their next login, such as a backoff or a refresh that never ends.
      for (const person of people) {
        await move(person, 'in');
        await request(person, false);
        await move(person, 'out');
      }
      await world.strategy.close();
    },
  );
});
