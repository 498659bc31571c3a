import { afterEach, beforeEach, vi } from 'vitest';
import { type Example, type ExampleOptions, startExample } from '../../example-app/src/example.js';
import type { Choice, Emulator } from '../../src/emulator/index.js';
import type { Page, Visit } from '../support/browser.js';
import { FollowingBrowser } from '../support/following-browser.js';
import { standIn } from '../support/stand-in.js';

/** The example as a test runs it: on a free port, with its service. */
export interface Application {
  readonly url: string;
  readonly service: Emulator;
  /** Logs in through the consent page. @returns The page that the login ends at. */
  logIn(browser: FollowingBrowser, user?: string, start?: string): Promise<Page>;
  tokenRequests(): number;
  /** Presses the button of an incident. @returns The page that it leads to. */
  incident(browser: FollowingBrowser, name: string): Promise<Page>;
  close(): Promise<void>;
}

/** Starts the example with the emulated service. */
export async function startApplication(options: Partial<ExampleOptions> = {}): Promise<Application> {
  const example: Example = await startExample({ port: 0, sessionSecret: 'secret of a test', ...options });
  const { url, service, close } = example;
  if (!service) throw new Error('the example has started no service');
  return {
    url,
    service,
    logIn: (browser, user = '1', start = '/login') => decideAt(browser, service, url + start, { user }),
    tokenRequests: () => service.requests.filter(({ path }) => path === '/oauth/token').length,
    incident: async (browser, name) =>
      browser.settle(await browser.visit(`${url}/incidents/${name}`, { method: 'POST' })),
    close,
  };
}

const [currentApplication, setApplication] = standIn<Application>('example');

/** Of the running test, after {@link startBeforeEach}. */
export const application: Application = currentApplication;
/** Of the running test; nobody is logged in. */
export const browser: FollowingBrowser = new FollowingBrowser();
/** How far the clock of {@link movedClock} is ahead, in milliseconds. */
let movedMs = 0;

/** The option `clock` of an example whose time a test moves. */
export const movedClock = { clock: (): number => Date.now() + movedMs };

export function advance(ms: number): void {
  movedMs += ms;
}

/** Starts the example before each test, with a browser, and ends it afterwards. */
export function startBeforeEach(options?: Partial<ExampleOptions>): void {
  beforeEach(() => start(options));
  afterEach(async () => {
    vi.restoreAllMocks();
    await application.close();
  });
}

/** Starts the example with other options than before. */
export async function restart(options: Partial<ExampleOptions>): Promise<void> {
  await application.close();
  await start(options);
}

async function start(options?: Partial<ExampleOptions>): Promise<void> {
  movedMs = 0;
  setApplication(await startApplication(options));
  browser.clear();
}

/** Visits a page of the example with the browser of the test. */
export const open = (path: string): Promise<Page> => browser.visit(`${application.url}${path}`);

/** Visits a page of the example that leads to the consent page, and decides there. @returns The page that it ends at. */
export const decide = (path: string, choice?: Choice, visit?: Visit): Promise<Page> =>
  decideAt(browser, application.service, application.url + path, choice, visit);

async function decideAt(
  visitor: FollowingBrowser,
  service: Emulator,
  url: string,
  choice?: Choice,
  visit?: Visit,
): Promise<Page> {
  const consent = await visitor.settle(await visitor.visit(url, visit));
  const callback = await service.approve(consent.headers.get('location') ?? '', choice);
  return visitor.settle(await visitor.visit(callback));
}
