import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import connect from 'connect';
import express from 'express';
import session from 'express-session';
import passportModule from 'passport';
import {
  type ApiClient,
  apiClient,
  logout,
  requireAuthorization,
  Strategy,
  type StrategyOptions,
  type Verify,
} from 'passport-oauth-app';
import { type Emulator, type EmulatorOptions, startEmulator } from 'passport-oauth-app/emulator';
import type { Browser, Page } from './browser.js';

/** Express 5. `npm run test:interop` runs the tests that concern a framework under Express 4 too. */
export type Framework = 'express' | 'connect';

/** A request as the handlers of the test application see it, whichever framework runs them. */
export type Req = IncomingMessage & Express.Request;
export type Next = (error?: unknown) => void;
export type Handler = (req: Req, res: ServerResponse, next: Next) => unknown;
export type ErrorHandler = (error: PassedError, req: Req, res: ServerResponse, next: Next) => unknown;

/** As much of an application as the frameworks have in common; Connect has `use` alone. */
export interface App {
  use(handler: Handler): unknown;
  use(handler: ErrorHandler): unknown;
  use(path: string, ...handlers: Handler[]): unknown;
  get(path: string, ...handlers: Handler[]): unknown;
  post(path: string, ...handlers: Handler[]): unknown;
  all(path: string, ...handlers: Handler[]): unknown;
  set(setting: string, value: unknown): unknown;
}

/** An error as it came to the error handler. */
export interface PassedError extends Error {
  readonly code?: string;
  readonly status?: number;
  readonly error?: unknown;
  readonly option?: string;
  readonly retryAfter?: number;
}

export type Passport = InstanceType<typeof passportModule.Passport>;

/** What a test sets otherwise. */
export interface WorldOptions {
  readonly framework?: Framework;
  readonly service?: EmulatorOptions;
  /** A service that runs already, instead of one of the world's own. It is not closed with the world. */
  readonly running?: Emulator;
  readonly strategy?: Partial<StrategyOptions>;
  /** Any arity. `undefined` leaves it out. */
  readonly verify?: ((...args: never[]) => unknown) | undefined;
  readonly session?: Partial<session.SessionOptions> | false;
  /** Adds routes after the usual ones. */
  readonly routes?: (app: App, world: World) => void;
  /** Adds middleware before the usual ones. */
  readonly before?: (app: App) => void;
  /** Adds middleware between the session and `apiClient`. */
  readonly beforeClient?: (app: App, world: World) => void;
  readonly authenticate?: object;
  /** Stands in the place of `passport.authenticate` at the callback. */
  readonly callback?: (world: World) => Handler;
  /** Use the instance itself instead of the name. */
  readonly byInstance?: boolean;
  /** Leaves `apiClient(strategy)` out. */
  readonly withoutApiClient?: boolean;
}

/** An application as the contract shows it, and the service that it talks to. */
export interface World {
  readonly url: string;
  readonly service: Emulator;
  readonly strategy: Strategy;
  readonly store: session.MemoryStore;
  readonly passport: Passport;
  /** Errors that handlers passed on. */
  readonly errors: PassedError[];
  /** Starts a login and approves it; the URL of the callback, not visited yet. */
  begin(browser: Browser, choice?: { user?: string; decline?: boolean }, login?: string): Promise<string>;
  /** Logs in as a user; the answer of the callback. */
  logIn(browser: Browser, user?: string): Promise<Page>;
  tokenRequests(): Emulator['requests'];
  /** What the session store holds: the key and the decoded content of each entry. */
  stored(): [string, Record<string, unknown>][];
  /** The grants among it: their keys in the store. */
  grantKeys(): string[];
  /** The references to grants in the sessions of the store. */
  references(): string[];
  close(): Promise<void>;
}

const verifyById: Verify = (_accessToken, _refreshToken, profile, done) => done(null, { id: profile.id });

/** The option `userProfile` for a service with opaque tokens. */
export const idFromApi: StrategyOptions['userProfile'] = async (client) => {
  const { data } = await client.get<{ data: { id: string } }>('/user');
  return { id: data.id };
};

/** The option `grantId` of an application whose users have an id. */
export const byUser = (_req: unknown, user: { id: string }): string => user.id;

/** A handler that logs a user of the application in, without the service. */
export const logInLocally =
  (id?: string): Handler =>
  (req, res, next) =>
    req.logIn({ id: id ?? String(Reflect.get(req, 'params').id) } as Express.User, (error) =>
      error ? next(error) : sendJson(res, {}),
    );

/** A handler that logs out by Passport's own method. */
export const logOutLocally: Handler = (req, res, next) =>
  req.logout((error) => (error ? next(error) : sendJson(res, {})));

/** The option `callback` of an application that answers with what Passport tells it. */
export const tellOutcome =
  ({ passport }: World): Handler =>
  (req, res, next) =>
    passport.authenticate('oauth-app', (error: unknown, user: unknown, info: unknown, status: unknown) =>
      sendJson(res, { error, user, info, status }),
    )(req, res, next);

/** Starts a service and an application that uses it, both on free ports. */
export async function startWorld(options: WorldOptions = {}): Promise<World> {
  const service = options.running ?? (await startEmulator(options.service));
  // No kept connection ends under a request.
  const server = createServer({ keepAliveTimeout: 0 });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  service.register({ clientID: service.options.clientID, redirectUrls: [`${url}/callback`] });
  const strategy = new Strategy(
    { ...service.options, callbackURL: `${url}/callback`, scope: ['project', 'tm'], ...options.strategy },
    ('verify' in options ? options.verify : verifyById) as Verify,
  );
  const sessionOptions = options.session === false ? undefined : options.session;
  const store = (sessionOptions?.store ?? new session.MemoryStore()) as session.MemoryStore;
  const world = createWorld(url, server, service, strategy, store);
  server.on('request', createApp(world, options));
  if (options.running === undefined) return world;
  return { ...world, close: () => closeApplication(strategy, server) };
}

function createWorld(
  url: string,
  server: Server,
  service: Emulator,
  strategy: Strategy,
  store: session.MemoryStore,
): World {
  const passport = new passportModule.Passport();
  passport.use(strategy as passportModule.Strategy);
  passport.serializeUser((user, done) => done(null, user));
  passport.deserializeUser((user: Express.User, done) => done(null, user));
  const stored = () => entriesOf(store);
  const world: World = {
    url,
    service,
    strategy,
    store,
    passport,
    errors: [],
    begin: async (browser, choice, login = '/login') => {
      const page = await browser.visit(`${url}${login}`);
      const location = page.headers.get('location');
      if (page.status !== 302 || !location) throw new Error(`The login route answered ${page.status}: ${page.text}`);
      return service.approve(location, choice);
    },
    logIn: async (browser, user) => browser.visit(await world.begin(browser, user === undefined ? {} : { user })),
    tokenRequests: () => service.requests.filter((request) => request.path === '/oauth/token'),
    stored,
    grantKeys: () => stored().flatMap(([key, entry]) => ('grant' in entry ? [key] : [])),
    references: () => stored().flatMap(([, entry]) => (strategy.name in entry ? [String(entry[strategy.name])] : [])),
    close: async () => {
      await closeApplication(strategy, server);
      await service.close();
    },
  };
  return world;
}

function createApp(world: World, options: WorldOptions): (req: IncomingMessage, res: ServerResponse) => void {
  const { framework = 'express', session: sessionOptions = {} } = options;
  const make = { connect, express }[framework] as () => unknown;
  const app = make() as App;
  options.before?.(app);
  if (sessionOptions) {
    const { store } = world;
    const usual = { secret: 'session secret', resave: false, saveUninitialized: false, store };
    app.use(session({ ...usual, ...sessionOptions }) as unknown as Handler);
  }
  app.use(sessionOptions ? (world.passport.session() as Handler) : passportSessionIfAny(world.passport));
  options.beforeClient?.(app, world);
  if (!options.withoutApiClient) app.use(apiClient(world.strategy));
  if (framework === 'connect') connectRoutes(app, world, options);
  else expressRoutes(app, world, options);
  options.routes?.(app, world);
  app.use((_req: Req, res: ServerResponse) => sendJson(res, { home: true }));
  app.use((error: PassedError, _req: Req, res: ServerResponse, _next: Next) => {
    world.errors.push(error);
    res.statusCode = error.status ?? 500;
    sendJson(res, { name: error.name, code: error.code, message: error.message });
  });
  return app as unknown as (req: IncomingMessage, res: ServerResponse) => void;
}

/** Passport's own middleware refuses requests without a session; here they are to reach what is tested. */
function passportSessionIfAny(passport: Passport): Handler {
  const authenticateSession = passport.session() as Handler;
  return (req, res, next) => (req.session ? authenticateSession(req, res, next) : next());
}

function connectRoutes(app: App, world: World, options: WorldOptions): void {
  app.use('/login', authenticate(world, options));
  app.use('/callback', options.callback?.(world) ?? authenticate(world, options));
  app.use('/projects', (req, res, next) => sendProjects(req, res).catch(next));
  app.use('/whoami', (req, res) => sendJson(res, who(req)));
  app.use('/logout', logout(world.strategy));
  app.use('/logout', (_req, res) => sendJson(res, {}));
  app.use('/private', requireAuthorization({ login: '/login' }));
}

function expressRoutes(app: App, world: World, options: WorldOptions): void {
  app.get('/login', authenticate(world, options));
  app.all('/callback', options.callback?.(world) ?? authenticate(world, options, { successReturnToOrRedirect: '/' }));
  app.get('/projects', requireAuthorization({ login: '/login' }), (req, res, next) =>
    sendProjects(req, res).catch(next),
  );
  app.get('/whoami', (req, res) => sendJson(res, who(req)));
  app.post('/logout', logout(world.strategy), (_req, res) => sendJson(res, {}));
}

function authenticate(world: World, options: WorldOptions, redirects: object = {}): Handler {
  // Passport takes an instance as well as a name; its types know of the name only.
  const which = (options.byInstance ? world.strategy : world.strategy.name) as string;
  return world.passport.authenticate(which, { ...redirects, ...options.authenticate }) as Handler;
}

function who(req: Req & { apiClient?: ApiClient }): object {
  const { authorized, grantId, organizationDomain, baseUrl } = req.apiClient ?? {};
  return { user: req.user, authorized, grantId, organizationDomain, baseUrl, session: req.session };
}

async function sendProjects(req: Req, res: ServerResponse): Promise<void> {
  sendJson(res, await req.apiClient.projects());
}

/** Answers with JSON, under any framework. */
export function sendJson(res: ServerResponse, body: unknown): void {
  res.setHeader('Content-Type', 'application/json');
  res.end(JSON.stringify(body) ?? 'null');
}

function entriesOf(store: session.MemoryStore): [string, Record<string, unknown>][] {
  const sessions = (Reflect.get(store, 'sessions') ?? {}) as Record<string, string>;
  return Object.entries(sessions).map(([key, text]) => [key, JSON.parse(text)]);
}

async function closeApplication(strategy: Strategy, server: Server): Promise<void> {
  await strategy.close();
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
}
