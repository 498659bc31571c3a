import { onTestFinished } from 'vitest';
import { Browser, type Page, type Visit } from './browser.js';
import { TestClock } from './test-clock.js';
import { startWorld, type World, type WorldOptions } from './world.js';

/** The world that the running test has opened last. It closes itself when the test ends. */
export const world = {} as World;
/** Of that world's application and service, after {@link loggedIn}. */
export const clock: TestClock = new TestClock();
/** Of the running test: without cookies, until {@link loggedIn} or {@link logIn} has logged a user in. */
export const browser: Browser = new Browser();

/** Starts a service and an application that uses it. */
export async function open(options?: WorldOptions): Promise<World> {
  const opened = await startWorld(options);
  Object.assign(world, opened);
  onTestFinished(async () => {
    browser.clear();
    clock.reset();
    await opened.close();
  });
  return opened;
}

/** Opens a world, and approves a login in {@link browser}. Returns the URL of its callback, which is not visited yet. */
export const openAtCallback = async (options?: WorldOptions) => (await open(options)).begin(browser);

/** Opens a world at a time that the test decides, and logs a user in; no request of the login is counted. */
export async function loggedIn({ service, strategy, ...options }: WorldOptions = {}, user?: string): Promise<World> {
  const times = { clock: clock.now };
  const opened = await open({ ...options, service: { ...times, ...service }, strategy: { ...times, ...strategy } });
  await logIn(user);
  opened.service.requests.length = 0;
  return opened;
}

/** Visits a path of the application, or any URL, with the browser of the test. */
export const visit = (path: string, options?: Visit): Promise<Page> =>
  browser.visit(path.startsWith('/') ? world.url + path : path, options);

/** Logs the browser of the test in; the answer of the callback. */
export const logIn = (user?: string): Promise<Page> => world.logIn(browser, user);

export const logOut = (visitor = browser): Promise<Page> => visitor.visit(`${world.url}/logout`, { method: 'POST' });

/** What the application knows of the request. */
export const whoami = async (visitor = browser) => (await visitor.visit(`${world.url}/whoami`)).json();

export const projects = (): Promise<Page> => visit('/projects');

/** The refresh tokens that the service was shown, in order. */
export const refreshTokens = (): (string | undefined)[] =>
  world.tokenRequests().map(({ body }) => (body as Record<string, string>).refresh_token);
