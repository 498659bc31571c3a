import { type Example, type ExampleOptions, startExample } from '../../example-app/src/example.js';
import type { Emulator } from '../../src/emulator/index.js';
import type { Browser, Page } from '../support/browser.js';

/** The example as a test runs it: on a free port, with its service. */
export interface Application {
  readonly url: string;
  readonly service: Emulator;
  /** Logs in through the consent page. @returns The page that the login ends at. */
  logIn(browser: Browser, user?: string, start?: string): Promise<Page>;
  tokenRequests(): number;
  /** Presses the button of an incident. @returns The page that it leads to. */
  incident(browser: Browser, name: string): Promise<Page>;
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
    logIn: async (browser, user = '1', start = '/login') => {
      const login = await browser.settle(await browser.visit(`${url}${start}`));
      const callback = await service.approve(login.headers.get('location') ?? '', { user });
      return browser.settle(await browser.visit(callback));
    },
    tokenRequests: () => service.requests.filter(({ path }) => path === '/oauth/token').length,
    incident: async (browser, name) =>
      browser.settle(await browser.visit(`${url}/incidents/${name}`, { method: 'POST' })),
    close,
  };
}
