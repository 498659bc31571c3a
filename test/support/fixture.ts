import { test as base } from 'vitest';
import { Browser } from './browser.js';
import { type LoggedIn, logInto } from './logged-in.js';
import { startWorld, type World, type WorldOptions } from './world.js';

/** What a test of whole flows is given. Everything it starts is closed when it ends. */
export interface FlowFixtures {
  /** Starts a service and an application that uses it. */
  readonly startWorld: (options?: WorldOptions) => Promise<World>;
  /** Starts both, with a clock that the test moves, and logs a user in. */
  readonly logInto: (options?: WorldOptions, user?: string) => Promise<LoggedIn>;
  /** A browser with no cookies. */
  readonly browser: Browser;
}

/** `test` of Vitest, with an application, a service and a browser that close themselves. */
export const test = base.extend<FlowFixtures>({
  // biome-ignore lint/correctness/noEmptyPattern: Vitest reads from the pattern which fixtures this one uses
  startWorld: async ({}, use) => {
    const worlds: World[] = [];
    await use(async (options) => {
      const world = await startWorld(options);
      worlds.push(world);
      return world;
    });
    for (const world of worlds.reverse()) await world.close();
  },
  // biome-ignore lint/correctness/noEmptyPattern: Vitest reads from the pattern which fixtures this one uses
  logInto: async ({}, use) => {
    const flows: LoggedIn[] = [];
    await use(async (options, user) => {
      const flow = await logInto(options, user);
      flows.push(flow);
      return flow;
    });
    for (const flow of flows.reverse()) await flow.world.close();
  },
  // biome-ignore lint/correctness/noEmptyPattern: Vitest reads from the pattern which fixtures this one uses
  browser: async ({}, use) => use(new Browser()),
});
