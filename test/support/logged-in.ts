import { Browser, type Page } from './browser.js';
import { TestClock } from './test-clock.js';
import { startWorld, type World, type WorldOptions } from './world.js';

/** A world in which somebody is logged in, at a time that the test decides. */
export interface LoggedIn {
  readonly world: World;
  /** Of the application and of the service. */
  readonly clock: TestClock;
  readonly browser: Browser;
  projects(): Promise<Page>;
  /** What the application knows of the request. */
  whoami(): Promise<{ authorized: boolean; grantId: string; organizationDomain?: string; baseUrl: string }>;
  /** The refresh tokens that the service was shown, in order. */
  refreshTokens(): (string | undefined)[];
}

/** Starts a world and logs a user in; the requests of the login are forgotten. */
export async function logInto({ service, strategy, ...options }: WorldOptions = {}, user?: string): Promise<LoggedIn> {
  const clock = new TestClock();
  const times = { clock: clock.now };
  const world = await startWorld({
    ...options,
    service: { ...times, ...service },
    strategy: { ...times, ...strategy },
  });
  const browser = new Browser();
  await world.logIn(browser, user);
  world.service.requests.length = 0;
  return {
    world,
    clock,
    browser,
    projects: () => browser.visit(`${world.url}/projects`),
    whoami: async () => (await browser.visit(`${world.url}/whoami`)).json(),
    refreshTokens: () => world.tokenRequests().map(({ body }) => (body as Record<string, string>).refresh_token),
  };
}
