import { Strategy, type StrategyOptions } from 'passport-oauth-app';
import { onTestFinished } from 'vitest';
import { Browser, type Page, type Visit } from './browser.js';
import { EventLog, type EventName } from './event-log.js';
import { withoutPauses } from './fast-forward.js';
import { type LoggedIn, logInto } from './logged-in.js';
import type { TestClock } from './test-clock.js';
import { inAnotherProcess } from './troubled-store.js';
import { startWorld, type World, type WorldOptions } from './world.js';

/** The world that the running test has opened last. It closes itself when the test ends. */
export let world: World;
/** Of that world's application and service, after {@link loggedIn}. */
export let clock: TestClock;
/** Of the running test: one with no cookies, or that in which {@link loggedIn} has logged a user in. */
export let browser: Browser = new Browser();
/** The time of the world's application, if the test decides it. */
let time: { readonly clock?: TestClock['now'] } = {};

/** Starts a service and an application that uses it. */
export async function open(options?: WorldOptions): Promise<World> {
  world = await closing(startWorld(options));
  time = {};
  return world;
}

/** Opens a world, and approves a login in {@link browser}. Returns the URL of its callback, which is not visited yet. */
export async function openAtCallback(options?: WorldOptions): Promise<string> {
  await open(options);
  return await world.begin(browser);
}

/** Adds a strategy for the same service to an application, below {@link world} or while that is opened; its callback is registered. */
export function addStrategy(
  { passport, service, url }: Pick<World, 'passport' | 'service' | 'url'>,
  name: string,
  path = '/callback',
  options: Partial<StrategyOptions> = {},
): Strategy {
  const callbackURL = url + path;
  register(callbackURL, service);
  const strategy = new Strategy({ ...service.options, name, callbackURL, scope: 'tm', ...options });
  onTestFinished(() => strategy.close());
  passport.use(strategy as never);
  return strategy;
}

/** Adds a redirect URL to those of the service's client. */
export function register(redirectUrl: string, service = world.service): void {
  service.register({ clientID: service.options.clientID, redirectUrls: [redirectUrl] });
}

/** Starts both at a time that the test decides, and logs a user in; no request of the login is counted. */
export async function loggedIn(options?: WorldOptions, user?: string): Promise<void> {
  const flow: LoggedIn = await logInto(options, user);
  await closing(flow.world);
  ({ world, clock, browser } = flow);
  time = { clock: clock.now };
}

/** Starts another process of the application, for the service and with the clock of the world. Its token store is an object of its own. */
export function another({ strategy, ...options }: WorldOptions = {}): Promise<World> {
  const tokenStore = strategy?.tokenStore && { tokenStore: inAnotherProcess(strategy.tokenStore) };
  return closing(startWorld({ running: world.service, ...options, strategy: { ...time, ...strategy, ...tokenStore } }));
}

async function closing(started: World | Promise<World>): Promise<World> {
  const opened = await started;
  onTestFinished(async () => {
    browser = new Browser();
    await opened.close();
  });
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

/** Settles as `work` does, in which the service refuses a refresh token: the store is read again after pauses, which pass without a wait. */
export const refused = <T>(work: () => Promise<T>): Promise<T> => withoutPauses(work, world.service.options.authUrl);

/** The refresh tokens that the service was shown, in order. */
export const refreshTokens = (): (string | undefined)[] =>
  world.tokenRequests().map(({ body }) => (body as Record<string, string>).refresh_token);

/** What is told on the diagnostics channels until the test ends. */
export function listen(...names: EventName[]): EventLog {
  const log = new EventLog(...names);
  onTestFinished(() => log.stop());
  return log;
}

/** The process warnings with a code, until the test ends. */
export function warnings(code: string): Error[] {
  const found: Error[] = [];
  const note = (warning: Error & { code?: string }) => void (warning.code === code && found.push(warning));
  process.on('warning', note);
  onTestFinished(() => void process.off('warning', note));
  return found;
}
