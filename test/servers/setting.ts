import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import session from 'express-session';
import { memoryTokenStore, type StrategyOptions } from 'passport-oauth-app';
import { Browser, type Page } from '../support/browser.js';
import { freePort } from '../support/service-process.js';
import { type Application, createApi, createApplication, listen } from './application.js';
import type { AuthorizationServer, Place, RunningServer, Tokens } from './authorization-server.js';
import { Gateway, type TokenRequest } from './gateway.js';

export const USERS = [
  { name: 'ada', password: 'Lovelace-1815' },
  { name: 'ben', password: 'Franklin-1706' },
  // Declines: servers ask nobody again who has consented before.
  { name: 'cleo', password: 'Ptolemy-69' },
] as const;

/** Has the characters of `openssl rand -base64` that a form changes. */
const SECRET = 'Zk9+b/3Tn5cRr2Ew8XyQ+1Lm/7Uv0aSd4GhJkP6oN9Q=';

/** An authorization server that runs, an API that asks it, and an application that uses both. */
export class Setting {
  readonly place: Place;
  readonly running: RunningServer;
  readonly gateway: Gateway;
  readonly options: StrategyOptions;
  readonly #listeners: readonly { close(): Promise<void> }[];
  #application: Application | undefined;
  #sessions = new session.MemoryStore();
  #aheadMs = 0;

  static async start(server: AuthorizationServer): Promise<Setting> {
    const port = await freePort();
    const gateway = new Gateway({ port, tokenPath: server.options.tokenPath ?? '' });
    await gateway.listen();
    const folder = await mkdtemp(join(tmpdir(), 'authorization-server-'));
    const api = await listen(createApi(askAt(server, gateway.origin)));
    const application = await listen((req, res) => setting.#application?.handle(req, res));
    const redirectUri = `${application.url}/callback`;
    const client = { id: 'application', secret: SECRET, redirectUri };
    const place = { port, origin: gateway.origin, folder, client, users: USERS };
    const running = await server.start(place);
    const setting = new Setting(place, running, gateway, { ...server.options, baseUrl: api.url }, [
      application,
      api,
      gateway,
    ]);
    return setting;
  }

  private constructor(
    place: Place,
    running: RunningServer,
    gateway: Gateway,
    options: Partial<StrategyOptions> & Pick<StrategyOptions, 'baseUrl'>,
    listeners: readonly { close(): Promise<void> }[],
  ) {
    this.place = place;
    this.running = running;
    this.gateway = gateway;
    this.#listeners = listeners;
    this.options = {
      scope: '',
      // The API asks a server, one request after the other, about each token of 200 requests.
      timeout: 60_000,
      ...options,
      authUrl: place.origin,
      clientID: place.client.id,
      clientSecret: place.client.secret,
      callbackURL: place.client.redirectUri,
      clock: () => Date.now() + this.#aheadMs,
      userProfile: (client) => client.projects<object>(),
    };
  }

  /** Starts the application with nobody logged in, in place of the one that ran. */
  async open(options: Partial<StrategyOptions> = {}): Promise<void> {
    this.#sessions = new session.MemoryStore();
    this.#aheadMs = 0;
    await this.reopen({ tokenStore: memoryTokenStore(), ...options });
  }

  /** Starts the application anew with the sessions of the one that ran, which ends. */
  async reopen(options: Partial<StrategyOptions>): Promise<void> {
    await this.#application?.close();
    this.#application = createApplication({ ...this.options, ...options }, this.#sessions);
  }

  /** Begins a login in a new browser and goes to the server and back; the callback's answer. */
  async visitServer(user: string, { declines = false } = {}): Promise<{ browser: Browser; callback: Page }> {
    const browser = new Browser();
    const { password } = USERS.find(({ name }) => name === user) ?? USERS[0];
    const login = await browser.visit(`${this.#url}/login`);
    const location = login.headers.get('location');
    if (location === null) throw new Error(`The login answered ${login.status}: ${login.text}`);
    const address = await this.running.authorize(browser, location, { name: user, password, declines });
    return { browser, callback: await browser.visit(address) };
  }

  /** A browser in which the user has logged in. @throws If the callback did not lead to the first page. */
  async logIn(user = 'ada'): Promise<Browser> {
    const { browser, callback } = await this.visitServer(user);
    if (callback.headers.get('location') !== '/') throw new Error(`The callback answered ${callback.text}`);
    return browser;
  }

  /** Who is logged in. */
  async home(browser: Browser): Promise<{ user: { id: string } | null; authorized: boolean }> {
    return (await browser.visit(`${this.#url}/`)).json();
  }

  /** A request that calls the API. */
  projects(browser: Browser): Promise<Page> {
    return browser.visit(`${this.#url}/projects`, { headers: { accept: 'application/json' } });
  }

  logOut(browser: Browser): Promise<Page> {
    return browser.visit(`${this.#url}/logout`, { method: 'POST' });
  }

  /** Lets time pass for the application. Default: until the access token that was issued last has expired. */
  advance(seconds = Number(this.lastAnswer.expires_in ?? 3600) + 1): number {
    this.#aheadMs += seconds * 1000;
    return seconds;
  }

  get lastAnswer(): TokenRequest['answer'] {
    return this.gateway.tokenRequests.at(-1)?.answer ?? {};
  }

  get lastTokens(): Tokens {
    const { access_token, refresh_token } = this.lastAnswer;
    return { accessToken: String(access_token), refreshToken: String(refresh_token) };
  }

  get refreshes(): readonly TokenRequest[] {
    return this.gateway.tokenRequests.filter(({ parameters }) => parameters.get('grant_type') === 'refresh_token');
  }

  /** Stops the application, its API and the server. */
  async close(): Promise<void> {
    await this.#application?.close();
    await this.running.close();
    for (const listener of this.#listeners) await listener.close();
    await rm(this.place.folder, { recursive: true, force: true });
  }

  get #url(): string {
    return new URL(this.place.client.redirectUri).origin;
  }
}

/** Asks the server whose an access token is; `undefined` if nobody's. */
function askAt({ identity }: AuthorizationServer, origin: string) {
  return async (authorization: string): Promise<string | undefined> => {
    const response = await fetch(`${origin}${identity.path}`, { headers: { authorization } });
    if (!response.ok) {
      await response.body?.cancel();
      return undefined;
    }
    const answer = (await response.json()) as Readonly<Record<string, unknown>>;
    return String(identity.user(answer));
  };
}
