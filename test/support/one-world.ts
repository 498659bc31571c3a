import { onTestFinished } from 'vitest';
import type { Browser, Page } from './browser.js';
import { logInto } from './logged-in.js';
import type { TestClock } from './test-clock.js';
import { startWorld, type World, type WorldOptions } from './world.js';

/** The world that the running test has opened last. It closes itself when the test ends. */
export let world: World;
/** Of that world's application and service, after {@link loggedIn}. */
export let clock: TestClock;
/** In which {@link loggedIn} has logged a user in. */
export let browser: Browser;

/** Starts a service and an application that uses it. */
export async function open(options?: WorldOptions): Promise<World> {
  const opened = await startWorld(options);
  onTestFinished(() => opened.close());
  world = opened;
  return opened;
}

/** Starts both at a time that the test decides, and logs a user in; no request of the login is counted. */
export async function loggedIn(options?: WorldOptions, user?: string): Promise<void> {
  const flow = await logInto(options, user);
  onTestFinished(() => flow.world.close());
  ({ world, clock, browser } = flow);
}

/** What the application knows of the request. */
export const whoami = async (visitor = browser) => (await visitor.visit(`${world.url}/whoami`)).json();

export const projects = (): Promise<Page> => browser.visit(`${world.url}/projects`);

/** The refresh tokens that the service was shown, in order. */
export const refreshTokens = (): (string | undefined)[] =>
  world.tokenRequests().map(({ body }) => (body as Record<string, string>).refresh_token);
