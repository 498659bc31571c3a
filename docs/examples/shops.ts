import express, { type Express } from 'express';
import session from 'express-session';
import passport from 'passport';
import { apiClient, logout, oauthErrors, requireAuthorization, type TokenStore } from 'passport-oauth-app';
import { shopify } from 'passport-oauth-app/providers';
import { type TenantOptions, type Tenants, tenants } from 'passport-oauth-app/tenants';

/** Settings that differ between production and tests. */
export interface Settings {
  /** Public address of the application. */
  readonly origin: string;
  readonly allowedHosts: readonly string[];
  readonly tokenStore: TokenStore;
  /** Looks a shop up: its host, and the credentials of the application there. */
  readonly findShop: (shop: string) => Promise<TenantOptions | undefined>;
}

/** Creates an application that any number of shops can install. */
export function createApp({ origin, allowedHosts, tokenStore, findShop }: Settings): { app: Express; shops: Tenants } {
  const shops = tenants(
    {
      ...shopify,
      name: 'shop',
      scope: ['read_orders'],
      callbackURL: `${origin}/callback/{tenant}`,
      allowedHosts,
      tokenStore,
      tenantOf: (req) => req.params.shop,
      resolve: findShop,
      // Tokens of Shopify belong to the shop: all of its staff share one grant.
      grantId: () => 'offline',
    },
    (_accessToken, _refreshToken, profile, done) => done(null, { id: profile.id, shop: profile.tenant }),
  );
  passport.use(shops);
  passport.serializeUser((user, done) => done(null, user));
  passport.deserializeUser((user: Express.User, done) => done(null, user));

  const app = express();
  app.use(session({ secret: 'replace this', resave: false, saveUninitialized: false }));
  app.use(passport.session());
  app.get('/callback/:shop', passport.authenticate('shop', { successReturnToOrRedirect: '/' }));
  app.post('/logout', logout(shops), (_req, res) => res.send('Logged out of all shops.'));

  const shop = express.Router({ mergeParams: true });
  shop.use(apiClient(shops));
  shop.get('/login', passport.authenticate('shop'));
  shop.use(requireAuthorization({ login: '/shops/{tenant}/login' }));
  shop.get('/', (req, res, next) => {
    const query = '{ shop { name } }';
    req.apiClient.post('/2026-10/graphql.json', { json: { query } }).then((body) => res.json(body), next);
  });
  app.use('/shops/:shop', shop);
  app.use(oauthErrors());
  return { app, shops };
}
