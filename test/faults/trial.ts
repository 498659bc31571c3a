import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { type Emulator, startEmulator } from '../../src/emulator/index.js';
import { Canaries } from '../security/canaries.js';
import { Browser, type Page, type Visit } from '../support/browser.js';
import { fastForward } from '../support/fast-forward.js';
import type { Behaviour } from '../support/faulty-server.js';
import { TestClock } from '../support/test-clock.js';
import { startWorld, type World } from '../support/world.js';
import { type Endpoint, type Gateway, startGateway } from './gateway.js';
import type { Row } from './matrix.js';
import { SplitNetwork } from './split-network.js';

const PATHS = { token: '/oauth/token', revoke: '/oauth/revoke', api: '/api/', other: '/' } as const;

/** An application whose way to the service can fail in every way, and whose secrets are all known. */
export interface Trial {
  readonly world: World;
  readonly gateway: Gateway;
  readonly clock: TestClock;
  readonly canaries: Canaries;
  readonly browser: Browser;
  visit(path: string, init?: Visit): Promise<Page>;
  /** Begins a login and approves it; the URL of the callback. */
  begin(): Promise<string>;
  /** Lets the row's fault strike. While it keeps a request without end, time passes. @returns requests, or connections where there are none, since then */
  strike(endpoint: Endpoint, row: Row): () => number;
  heal(): Promise<void>;
  /** Resolves when a refresh has ended, however that was. */
  refreshEnds(): Promise<void>;
  /** Resolves when a revocation has ended, however that was. */
  revocationEnds(): Promise<void>;
  /** Logins that were begun at the service so far. */
  logins(): number;
  close(): Promise<void>;
}

/** Starts service, gateway and application. */
export async function startTrial(): Promise<Trial> {
  const clock = new TestClock();
  const canaries = new Canaries();
  // What a lost answer rotated away works once more: so it shows whether the grant was kept.
  const service: Emulator = await startEmulator({ clock: clock.now, refreshTokenReuse: 'grace' });
  canaries.hide('client secret', service.options.clientSecret);
  const gateway = await startGateway(service, canaries);
  const network = new SplitNetwork();
  const { origin } = gateway;
  const addresses = { authUrl: origin, baseUrl: origin, enterpriseBaseUrl: undefined };
  const usual = { ...addresses, revocationPath: '/oauth/revoke', clock: clock.now };
  const strategy = { ...usual, pkce: true, dispatcher: network };
  const world = await startWorld({ running: service, strategy });
  const browser = new Browser();
  let kept = 0;
  const keep =
    (behaviour: Behaviour): Behaviour =>
    (socket, request) => {
      kept += 1;
      socket.on('close', () => {
        kept -= 1;
      });
      behaviour(socket, request);
    };
  let end = () => {};
  let passingTime = Promise.resolve();
  const heal = async () => {
    gateway.heal();
    network.mend();
    end();
    await passingTime;
  };
  const visit = async (url: string, init?: Visit) => {
    const page = await browser.visit(url, init);
    canaries.notePage(page);
    return page;
  };
  return {
    world,
    gateway,
    clock,
    canaries,
    browser,
    visit: (path, init) => visit(path.startsWith('/') ? world.url + path : path, init),
    begin: async () => {
      const { headers } = await visit(`${world.url}/login`);
      return await service.approve((headers.get('location') ?? '').replace(origin, service.authUrl));
    },
    strike: (endpoint, { trouble, endless }) => {
      const isOver = new Promise<void>((resolve) => {
        end = resolve;
      });
      const isKept = () => kept > 0;
      if (endless) passingTime = fastForward(() => isOver, isKept);
      const count = () => ('connect' in trouble ? network.failures : gateway.requests(endpoint).length);
      const before = count();
      if ('connect' in trouble) network.cut(PATHS[endpoint], trouble.connect);
      else gateway.fail(endpoint, 'does' in trouble ? keep(trouble.does) : gateway.afterEffect(trouble.afterEffect));
      return () => count() - before;
    },
    heal,
    refreshEnds: () => nextEvent('refresh'),
    revocationEnds: () => nextEvent('grant', ({ action }) => action !== 'deleted'),
    logins: () => service.requests.filter(({ path }) => path === '/oauth/authorize').length,
    close: async () => {
      await heal();
      canaries.noteWorld(world);
      canaries.stop();
      await world.close();
      await gateway.close();
      await service.close();
      await network.close();
    },
  };
}

/** Resolves at the next event of a name, or at the next one that `isIt` accepts. */
function nextEvent(
  name: 'refresh' | 'grant',
  isIt: (event: { readonly action?: unknown }) => boolean = () => true,
): Promise<void> {
  return new Promise((resolve) => {
    const listener = (event: unknown) => {
      if (!isIt(Object(event))) return;
      unsubscribe(`passport-oauth-app:${name}`, listener);
      resolve();
    };
    subscribe(`passport-oauth-app:${name}`, listener);
  });
}
