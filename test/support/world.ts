import { once } from 'node:events';
import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import connect from 'connect';
import express, { type ErrorRequestHandler, type Express, type Request, type RequestHandler } from 'express';
import session from 'express-session';
import passportModule from 'passport';
import type { StrategyOptions, Verify } from 'passport-oauth-app';
import { apiClient, logout, requireAuthorization, Strategy } from 'passport-oauth-app';
import { type Emulator, type EmulatorOptions, startEmulator } from 'passport-oauth-app/emulator';
import type { Browser, Page } from './browser.js';

export type App = Express;
export type ErrorHandler = ErrorRequestHandler;
export type Handler = RequestHandler;
export type Req = Request;
/** Express 5. `npm run test:interop` runs the tests that concern a framework under Express 4 too. Connect has `use` alone. */
export type Framework = 'express' | 'connect';

export type Passport = InstanceType<typeof passportModule.Passport>;
/** An error as it came to the error handler. */
type PassedError = Error & { code?: string; status?: number; error?: unknown; option?: string; retryAfter?: number };

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
export class World {
  readonly url: string;
  readonly service: Emulator;
  readonly strategy: Strategy;
  readonly store: session.MemoryStore;
  readonly passport: Passport = new passportModule.Passport();
  /** Errors that handlers passed on. */
  readonly errors: PassedError[] = [];
  readonly #server: Server;
  readonly options: WorldOptions;

  constructor(server: Server, service: Emulator, options: WorldOptions) {
    this.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    this.service = service;
    const callbackURL = `${this.url}/callback`;
    service.register({ clientID: service.options.clientID, redirectUrls: [callbackURL] });
    const strategy = { ...service.options, callbackURL, scope: ['project', 'tm'], ...options.strategy };
    const verify = 'verify' in options ? options.verify : verifyById;
    this.strategy = new Strategy(strategy, verify as Verify);
    this.store = ((options.session || undefined)?.store ?? new session.MemoryStore()) as session.MemoryStore;
    this.passport.use(this.strategy as passportModule.Strategy);
    this.passport.serializeUser((user, done) => done(null, user));
    this.passport.deserializeUser((user: Express.User, done) => done(null, user));
    this.#server = server.on('request', createApp(this, options));
    this.options = options;
  }

  /** Starts a login and approves it; the URL of the callback, not visited yet. */
  async begin(browser: Browser, choice?: { user?: string; decline?: boolean }, login = '/login'): Promise<string> {
    const page = await browser.visit(this.url + login);
    const location = page.headers.get('location');
    if (page.status !== 302 || !location) throw new Error(`The login route answered ${page.status}: ${page.text}`);
    return this.service.approve(location, choice);
  }

  /** Logs in as a user; the answer of the callback. */
  async logIn(browser: Browser, user?: string): Promise<Page> {
    return browser.visit(await this.begin(browser, user === undefined ? {} : { user }));
  }

  tokenRequests(): Emulator['requests'] {
    return this.service.requests.filter(({ path }) => path === '/oauth/token');
  }

  async close(): Promise<void> {
    await this.strategy.close();
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
    if (!this.options.running) await this.service.close();
  }
}

/** Starts a service and an application that uses it, both on free ports. */
export async function startWorld(options: WorldOptions = {}): Promise<World> {
  // No kept connection ends under a request.
  const server = createServer({ keepAliveTimeout: 0 }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return new World(server, options.running ?? (await startEmulator(options.service)), options);
}

const verifyById: Verify = (_accessToken, _refreshToken, profile, done) => done(null, { id: profile.id });

/** The option `grantId` of an application whose users have an id. */
export const byUser = (_req: unknown, user: { id: string }): string => user.id;

/** Answers with JSON, under any framework. */
export function sendJson(res: ServerResponse, body: unknown): void {
  res.setHeader('Content-Type', 'application/json');
  res.end(JSON.stringify(body) ?? 'null');
}

function createApp(world: World, options: WorldOptions): App {
  const { framework = 'express', session: sessionOptions = {} } = options;
  const app = { connect, express }[framework]() as App;
  options.before?.(app);
  if (sessionOptions) {
    const usual = { secret: 'session secret', resave: false, saveUninitialized: false, store: world.store };
    app.use(session({ ...usual, ...sessionOptions }));
  }
  const passportSession: Handler = world.passport.session();
  // It refuses requests without a session; here they are to reach what is tested.
  app.use((req, res, next) => (sessionOptions || req.session ? passportSession(req, res, next) : next()));
  options.beforeClient?.(app, world);
  if (!options.withoutApiClient) app.use(apiClient(world.strategy));
  addRoutes(app, world, options);
  options.routes?.(app, world);
  app.use((_req, res) => sendJson(res, { home: true }));
  app.use(((error, _req, res, _next) => {
    world.errors.push(error);
    res.statusCode = error.status ?? 500;
    sendJson(res, { name: error.name, code: error.code, message: error.message });
  }) as ErrorHandler);
  return app;
}

function addRoutes(app: App, world: World, { authenticate, byInstance, callback, framework }: WorldOptions): void {
  // Passport takes an instance as well as a name; its types know of the name only.
  const which = (byInstance ? world.strategy : world.strategy.name) as string;
  const login = (redirects?: object): Handler => world.passport.authenticate(which, { ...redirects, ...authenticate });
  const guard = requireAuthorization({ login: '/login' }) as Handler;
  const projects: Handler = (req, res, next) => void req.apiClient.projects().then((data) => sendJson(res, data), next);
  const whoami: Handler = (req, res) => {
    const { authorized, grantId, organizationDomain, baseUrl } = req.apiClient ?? {};
    sendJson(res, { user: req.user, authorized, grantId, organizationDomain, baseUrl, session: req.session });
  };
  if (framework === 'connect') {
    app.use('/login', login());
    app.use('/callback', callback?.(world) ?? login());
    app.use('/projects', projects);
    app.use('/whoami', whoami);
    app.use('/logout', logout(world.strategy) as Handler);
    app.use('/logout', (_req, res) => sendJson(res, {}));
    app.use('/private', guard);
  } else {
    app.get('/login', login());
    app.all('/callback', callback?.(world) ?? login({ successReturnToOrRedirect: '/' }));
    app.get('/projects', guard, projects);
    app.get('/whoami', whoami);
    app.post('/logout', logout(world.strategy), (_req, res) => sendJson(res, {}));
  }
}
