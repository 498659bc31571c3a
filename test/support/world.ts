import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import connect from 'connect';
import express, { type Express, type RequestHandler } from 'express';
import session from 'express-session';
import passportModule from 'passport';
import type { StrategyOptions, Verify } from 'passport-oauth-app';
import { apiClient, logout, requireAuthorization, Strategy } from 'passport-oauth-app';
import { type Emulator, type EmulatorOptions, startEmulator } from 'passport-oauth-app/emulator';
import type { Browser } from './browser.js';

export type { Express as App, Request as Req, RequestHandler as Handler } from 'express';
/** Express is 5; `npm run test:interop` runs the tests that concern a framework under 4 too. Connect has `use` alone. */
export type Framework = 'express' | 'connect';

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
  /** Adds middleware before the usual ones, between the session and `apiClient`, or routes after the usual ones. */
  readonly before?: (app: Express) => void;
  readonly beforeClient?: (app: Express, world: World) => void;
  readonly routes?: (app: Express, world: World) => void;
  readonly authenticate?: object;
  /** Stands in the place of `passport.authenticate` at the callback. */
  readonly callback?: (world: World) => RequestHandler;
  readonly withoutApiClient?: boolean;
}

type PassedError = Error & { code?: string; status?: number; error?: unknown; option?: string; retryAfter?: number };

export type World = Awaited<ReturnType<typeof startWorld>>;

/** Starts a service, and an application that uses it as the contract shows, both on free ports. */
export async function startWorld(options: WorldOptions = {}) {
  // No kept connection ends under a request.
  const server = createServer({ keepAliveTimeout: 0 }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const service = options.running ?? (await startEmulator(options.service));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const callbackURL = `${url}/callback`;
  const usual = { ...service.options, callbackURL, scope: ['project', 'tm'] };
  const verify = 'verify' in options ? options.verify : verifyById;
  const strategy = new Strategy({ ...usual, ...options.strategy }, verify as Verify);
  const passport = new passportModule.Passport();
  passport.use(strategy as passportModule.Strategy);
  passport.serializeUser((user, done) => done(null, user));
  passport.deserializeUser((user: Express.User, done) => done(null, user));
  const store = ((options.session || undefined)?.store ?? new session.MemoryStore()) as session.MemoryStore;
  /** Errors that handlers passed on. */
  const errors: PassedError[] = [];
  /** Adds a redirect URL to those of the service's client. */
  const register = (redirectUrl: string) =>
    service.register({ clientID: service.options.clientID, redirectUrls: [redirectUrl] });
  /** Starts a login and approves it; the URL of the callback, not visited yet. */
  const begin = async (browser: Browser, choice?: { user?: string; decline?: boolean }, login = '/login') => {
    const page = await browser.visit(url + login);
    const location = page.headers.get('location');
    if (page.status !== 302 || !location) throw new Error(`The login route answered ${page.status}: ${page.text}`);
    return service.approve(location, choice);
  };
  /** Logs in as a user; the answer of the callback. */
  const logIn = async (browser: Browser, user?: string) => browser.visit(await begin(browser, user ? { user } : {}));
  const tokenRequests = () => service.requests.filter(({ path }) => path === '/oauth/token');
  const close = async () => {
    await strategy.close();
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
    if (!options.running) await service.close();
  };
  const parts = { options, url, service, strategy, passport, store, errors };
  const world = { ...parts, register, begin, logIn, tokenRequests, close };
  register(callbackURL);
  server.on('request', createApp(world));
  return world;
}

const verifyById: Verify = (_accessToken, _refreshToken, profile, done) => done(null, { id: profile.id });

/** The option `grantId` of an application whose users have an id. */
export const byUser = (_req: unknown, user: { id: string }): string => user.id;

/** Answers with JSON, under any framework. */
export const sendJson = (res: ServerResponse, body: unknown): unknown =>
  res.setHeader('Content-Type', 'application/json').end(JSON.stringify(body) ?? 'null');

function createApp(world: World): Express {
  const { passport, strategy, store, errors, options } = world;
  const { framework, session: sessionOptions = {}, authenticate, callback } = options;
  const app = (framework === 'connect' ? connect() : express()) as Express;
  const login = (redirects?: object) => passport.authenticate(`${strategy.name}`, { ...redirects, ...authenticate });
  const route = (method: 'all' | 'get' | 'post', path: string, ...handlers: RequestHandler[]) => {
    if (framework === 'connect') for (const handler of handlers) app.use(path, handler);
    else app[method](path, ...handlers);
  };
  options.before?.(app);
  if (sessionOptions) {
    app.use(session({ secret: 'session secret', resave: false, saveUninitialized: false, store, ...sessionOptions }));
  }
  // It refuses requests without a session; here they are to reach what is tested.
  app.use((req, res, next) => (sessionOptions || req.session ? passport.session()(req, res, next) : next()));
  options.beforeClient?.(app, world);
  if (!options.withoutApiClient) app.use(apiClient(strategy));
  route('get', '/login', login());
  const redirects = framework === 'connect' ? {} : { successReturnToOrRedirect: '/' };
  route('all', '/callback', callback?.(world) ?? login(redirects));
  route('get', '/projects', requireAuthorization({ login: '/login' }), (req, res, next) => {
    req.apiClient.projects().then((data) => sendJson(res, data), next);
  });
  route('get', '/whoami', (req, res) => {
    const { authorized, grantId, organizationDomain, baseUrl } = req.apiClient ?? {};
    sendJson(res, { user: req.user, authorized, grantId, organizationDomain, baseUrl, session: req.session });
  });
  route('post', '/logout', logout(strategy), (_req, res) => sendJson(res, {}));
  options.routes?.(app, world);
  app.use((_req, res) => sendJson(res, { home: true }));
  app.use((error: PassedError, _req: unknown, res: ServerResponse, _next: unknown) => {
    errors.push(error);
    res.statusCode = error.status ?? 500;
    sendJson(res, { name: error.name, code: error.code, message: error.message });
  });
  return app;
}
