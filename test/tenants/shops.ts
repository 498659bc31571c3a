import { createServer } from 'node:http';
import express, { type Express } from 'express';
import session from 'express-session';
import passportModule from 'passport';
import {
  apiClient,
  logout,
  memoryTokenStore,
  oauthErrors,
  requireAuthorization,
  type TokenStore,
} from 'passport-oauth-app';
import { type Emulator, type EmulatorOptions, startEmulator } from 'passport-oauth-app/emulator';
import { type TenantsOptions, tenants } from 'passport-oauth-app/tenants';
import { onTestFinished } from 'vitest';
import { Browser, type Page } from '../support/browser.js';

/** Names of the tenants that the directory of {@link openShops} knows. */
export const SHOPS = ['acme', 'globex', 'initech'];

/** What a test sets otherwise. */
export interface ShopsOptions {
  readonly service?: EmulatorOptions;
  readonly running?: Emulator;
  readonly tokenStore?: TokenStore;
  readonly options?: Partial<TenantsOptions>;
  /** Changes what the directory says of a tenant. */
  readonly resolve?: (tenant: string, usual: object | undefined) => unknown;
  readonly routes?: (app: Express) => void;
  /** One callback URL serves all tenants. */
  readonly sharesCallback?: boolean;
}

/** An application of many tenants, and the service that has them. */
export async function openShops({ service, running, options, resolve, routes, ...given }: ShopsOptions = {}) {
  const emulator = running ?? (await startEmulator({ tenants: SHOPS, ...service }));
  if (!running) onTestFinished(() => emulator.close());
  const server = createServer({ keepAliveTimeout: 0 });
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  const address = server.address();
  const port = typeof address === 'object' ? address?.port : 0;
  const url = `http://localhost:${port}`;
  const asked: string[] = [];
  const names = service?.tenants ?? SHOPS;
  for (const tenant of names) {
    const { clientID } = emulator.optionsOf(tenant);
    emulator.register({ clientID, redirectUrls: [`${url}/callback/${tenant}`, `${url}/callback`] });
  }
  const tokenStore = given.tokenStore ?? memoryTokenStore();
  const shops = tenants(
    {
      ...{ name: 'shop', scope: ['project'], tokenStore },
      callbackURL: given.sharesCallback ? `${url}/callback` : `${url}/callback/{tenant}`,
      allowedHosts: [`*.localhost:${new URL(emulator.authUrl).port}`],
      tenantOf: (req) => req.params.shop,
      resolve: async (tenant) => {
        asked.push(tenant);
        const usual = names.includes(tenant) ? emulator.optionsOf(tenant) : undefined;
        return (resolve ? await resolve(tenant, usual) : usual) as object | undefined;
      },
      ...options,
    },
    (_accessToken, _refreshToken, profile, done) => done(null, { id: profile.id, tenant: profile.tenant }),
  );
  onTestFinished(() => shops.close());
  const passport = new passportModule.Passport();
  passport.use(shops);
  passport.serializeUser((user, done) => done(null, user));
  passport.deserializeUser((user: Express.User, done) => done(null, user));
  const app = express();
  app.use(session({ secret: 'only for tests', resave: false, saveUninitialized: false }));
  app.use(passport.session());
  const shop = express.Router({ mergeParams: true });
  shop.use(apiClient(shops));
  shop.get('/login', passport.authenticate('shop'));
  shop.get('/me', (req, res) => {
    const { authorized, tenant, baseUrl } = req.apiClient;
    res.json({ authorized, tenant, baseUrl, user: req.user });
  });
  shop.get('/projects', requireAuthorization({ login: '/shops/{tenant}/login' }), (req, res, next) => {
    req.apiClient.projects().then((projects) => res.json(projects), next);
  });
  shop.get('/user', (req, res, next) => {
    req.apiClient.get('/user').then((user) => res.json(user), next);
  });
  routes?.(app);
  const callback = passport.authenticate('shop');
  app.get(['/callback', '/callback/:shop'], callback, (_req, res) => res.send('Logged in.'));
  app.use('/shops/:shop', shop);
  app.use('/latest', shop);
  app.post('/logout', logout(shops), (_req, res) => res.send('Logged out.'));
  app.post('/shops/:shop/leave', apiClient(shops), (req, res, next) => {
    req.logout((error) => (error ? next(error) : res.send('Logged out.')));
  });
  app.use(oauthErrors({ login: '/shops/{tenant}/login' }));
  server.on('request', app);
  onTestFinished(() => void server.close());
  /** Logs in at a tenant; the answer of the callback. */
  async function logIn(browser: Browser, tenant: string, user = '1'): Promise<Page> {
    const page = await browser.visit(`${url}/shops/${tenant}/login`);
    return await browser.visit(await emulator.approve(page.headers.get('location') ?? '', { user }));
  }
  const me = async (browser: Browser, tenant: string) => (await browser.visit(`${url}/shops/${tenant}/me`)).json();
  const requestsTo = (tenant: string, path = '/oauth/token') =>
    emulator.requests.filter(({ headers, path: its }) => headers.host?.startsWith(`${tenant}.`) && its === path);
  return { url, service: emulator, shops, tokenStore, asked, logIn, me, requestsTo, passport, browser: new Browser() };
}
