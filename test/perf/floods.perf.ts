import { Agent } from 'undici';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { noteFigure } from '../fuzz/fuzz.js';
import { heapBytes } from '../support/heap.js';
import { stored } from '../support/session-entries.js';
import { threats } from '../support/threats.js';
import { startWorld, type World } from '../support/world.js';

/** Requests of a flood: some in a usual run, 100,000 for the figures of docs/security.md. */
const FLOOD = Number(process.env.FLOOD_REQUESTS ?? 1_000);
const AT_ONCE = 32;

/** Less than a hundredth of what a session for each request would take. */
const MAX_GROWTH_BYTES = 6 * 1024 * 1024;

let world: World;
let agent: Agent;
beforeEach(async () => {
  world = await startWorld();
  agent = new Agent({ connections: AT_ONCE });
});
afterEach(async () => {
  await agent.close();
  await world.close();
});

/** The statuses of so many requests, and how often each came. */
async function flood(count: number, path: (index: number) => string): Promise<Record<number, number>> {
  const statuses: Record<number, number> = {};
  let next = 0;
  const worker = async () => {
    for (let index = next++; index < count; index = next++) {
      const { statusCode, body } = await agent.request({ origin: world.url, path: path(index), method: 'GET' });
      await body.dump();
      statuses[statusCode] = (statuses[statusCode] ?? 0) + 1;
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  return statuses;
}

const forged = (index: number) => `/callback?code=c${index}&state=${index.toString(36).padStart(43, 'A')}`;
const FLOODS = [
  ['anonymous login starts', () => '/login', 302],
  ['logins that come from a page', (index: number) => `/login?returnTo=/projects/${index}`, 302],
  ['forged callbacks', forged, 403],
  ['forged errors', (index: number) => forged(index).replace('code=', 'error='), 403],
] as const;

test.each(FLOODS)(
  'a flood of %s leaves the heap and the session store as they were, and sends nothing',
  { ...threats(13), timeout: 600_000 },
  async (what, path, status) => {
    await flood(Math.max(250, FLOOD / 20), path);
    const before = await heapBytes();
    expect(await flood(FLOOD, path)).toEqual({ [status]: FLOOD });
    const growth = (await heapBytes()) - before;
    expect(growth).toBeLessThan(MAX_GROWTH_BYTES);
    expect(stored(world)).toEqual([]);
    expect(world.service.requests).toEqual([]);
    noteFigure({
      kind: 'flood',
      what,
      requests: FLOOD,
      growthKiB: Math.round(growth / 1024),
      stored: stored(world).length,
    });
  },
);
