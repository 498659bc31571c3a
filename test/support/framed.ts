import { createCipheriv, createHash, hkdfSync, randomBytes } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import type { Session, SessionOptions } from 'express-session';
import { type EmbeddedOptions, embedded, requireAuthorization } from 'passport-oauth-app';
import type { Choice } from 'passport-oauth-app/emulator';
import { Browser, type Page } from './browser.js';
import { type Handler, type Req, sendJson, type World, type WorldOptions } from './world.js';

/** The sessions that an application may have, by how their cookies do in a frame of another site. */
export const COOKIES = {
  lax: {},
  none: { sameSite: 'none', secure: true },
  partitioned: { sameSite: 'none', secure: true, partitioned: true },
} as const satisfies Record<string, SessionOptions['cookie']>;

/** The origin whose pages may show the application. */
export const hostOf = ({ service }: Pick<World, 'service'>) => new URL(service.embed('http://app.invalid')).origin;

/** Session cookies with `Secure`, although nothing here has TLS: browsers keep them for *.localhost. */
export function sessionWith(cookie: SessionOptions['cookie']): Pick<WorldOptions, 'session' | 'before'> {
  return {
    session: { proxy: true, ...(cookie ? { cookie } : {}) },
    before: (app) =>
      app.use((req, _res, next) => {
        req.headers['x-forwarded-proto'] = 'https';
        next();
      }),
  };
}

/** An application in a frame of the service: its page is /board, one that needs a scope /deep, its API below /api. */
export function inFrame(
  given: WorldOptions = {},
  options: Partial<EmbeddedOptions> | ((world: World) => Partial<EmbeddedOptions>) = {},
  authorization: object = {},
): WorldOptions {
  let frame: Handler;
  return {
    ...sessionWith(COOKIES.partitioned),
    ...given,
    strategy: { callbackURL: '/callback', ...given.strategy },
    beforeClient: (app, world) => {
      frame = embedded(world.strategy, {
        path: '/login/frame',
        login: '/login',
        frameAncestors: [hostOf(world)],
        ...(typeof options === 'function' ? options(world) : options),
      }) as Handler;
      app.use(frame);
      given.beforeClient?.(app, world);
    },
    routes: (app, world) => {
      const guard = requireAuthorization({ login: '/login', frame, ...authorization } as object) as Handler;
      const show: Handler = (req, res) => sendJson(res, { user: req.user, url: Reflect.get(req, 'originalUrl') });
      const deep = requireAuthorization({ login: '/login', frame, scope: 'tm' } as object) as Handler;
      for (const handler of [deep, show]) app.use('/deep', handler);
      for (const handler of [guard, show]) app.use('/board', handler);
      for (const handler of [requireAuthorization() as Handler, show]) app.use('/api', handler);
      given.routes?.(app, world);
    },
  };
}

/** What an application answers after a login. */
export type Answer = (req: Req & { session: Session }, res: ServerResponse) => unknown;

/** The option `callback` of an application that goes on by itself after the login. */
export const answering =
  (answer: Answer): NonNullable<WorldOptions['callback']> =>
  ({ passport }) =>
  (req, res, next) =>
    passport.authenticate('oauth-app')(req, res, (error?: unknown) =>
      error ? next(error) : answer(req as Parameters<Answer>[0], res),
    );

/** The parameter of the frame's address with the scopes that its user has refused. */
export const REFUSED_PARAMETER = 'oauth-app.refused';

/** What a browser says of a page in a frame of another site. */
export const FRAME = {
  'sec-fetch-dest': 'iframe',
  'sec-fetch-mode': 'navigate',
  'sec-fetch-site': 'cross-site',
  'sec-fetch-storage-access': 'none',
};

/** What a browser says of a window that a page of the application has opened. */
export const WINDOW = { 'sec-fetch-dest': 'document', 'sec-fetch-mode': 'navigate', 'sec-fetch-site': 'same-origin' };

/** What a browser says of a request that a page of the application has sent by `fetch`. */
export const FETCH = { 'sec-fetch-dest': 'empty', 'sec-fetch-mode': 'cors', 'sec-fetch-site': 'same-origin' };

/** What the scripts of the two pages get: see frame-pages.ts. */
export interface PageData {
  readonly url: string;
  readonly path: string;
  readonly verifier: string;
  readonly code: string;
  readonly refused: string;
}

/** Returns what the script of a page gets. */
export function dataOf({ text }: Pick<Page, 'text'>): PageData {
  const [, json] = /const d=(\{.*?\});/s.exec(text) ?? [];
  if (json === undefined) throw new Error(`The page has no script: ${text.slice(0, 300)}`);
  return JSON.parse(json);
}

/** Returns what a popup handed over until its sessions stayed on the server: a session of an admin, sealed with the client secret. */
export function forgedCode({ service }: World, verifier: string, now: number): string {
  const { authUrl, clientID, clientSecret } = service.options;
  const digest = (text: string) => createHash('sha256').update(text).digest('base64url');
  const short = (...parts: string[]) => digest(JSON.stringify(parts)).slice(0, 11);
  const application = short(short(authUrl, clientID), '/callback');
  const key = hkdfSync('sha256', clientSecret, 'passport-oauth-app', `frame ${application}`, 32);
  const iv = randomBytes(12);
  const cipher = createCipheriv('aes-256-gcm', Buffer.from(key), iv).setAAD(Buffer.from('code'));
  const content = { passport: { user: { id: 'admin' } } };
  const text = JSON.stringify([randomBytes(32).toString('base64url'), digest(verifier), now + 60_000, content]);
  return Buffer.concat([iv, cipher.update(text), cipher.final(), cipher.getAuthTag()]).toString('base64url');
}

/** An application in a frame, over HTTP: the frame's cookies are in a partition of their own. */
export class FramedBrowser {
  readonly #world: World;
  readonly frame: Browser = new Browser();
  readonly tabs: Browser = new Browser();

  constructor(world: World) {
    this.#world = world;
  }

  /** Loads a page of the application into the frame. */
  load(path = '/board', headers: Record<string, string> = FRAME): Promise<Page> {
    return this.frame.visit(this.#world.url + path, { headers });
  }

  /** Presses the button, approves as a user or as told, and returns the page that ends the popup. */
  async logIn({ url }: Pick<PageData, 'url'>, choice: string | Choice = {}, tabs: Browser = this.tabs): Promise<Page> {
    const begun = await tabs.visit(this.#world.url + url, { headers: WINDOW });
    const location = begun.headers.get('location');
    if (!location) return begun;
    const callback = await this.#world.service.approve(
      location,
      typeof choice === 'string' ? { user: choice } : choice,
    );
    return tabs.visit(callback, { headers: { ...WINDOW, 'sec-fetch-site': 'cross-site' } });
  }

  /** Sends to the application what the popup has brought. */
  take(body: unknown, headers: Record<string, string> = FETCH, browser: Browser = this.frame): Promise<Page> {
    return browser.visit(`${this.#world.url}/login/frame`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: typeof body === 'string' ? body : JSON.stringify(body),
    });
  }
}
