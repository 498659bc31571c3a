import '@shopify/shopify-api/adapters/node';
import { OAuth2Client as BadgatewayClient, OAuth2Fetch } from '@badgateway/oauth2-client';
import { createOAuthUserAuth } from '@octokit/auth-oauth-user';
import { request } from '@octokit/request';
import { ApiVersion, shopifyApi } from '@shopify/shopify-api';
import { setAbstractFetchFunc } from '@shopify/shopify-api/runtime';
import { OAuth2Client as ArcticClient } from 'arctic';
import { betterAuth } from 'better-auth';
import { memoryAdapter } from 'better-auth/adapters/memory';
import { genericOAuth } from 'better-auth/plugins';
import ClientOAuth2 from 'client-oauth2';
import { OAuth2Client as GoogleClient } from 'google-auth-library';
import jsforce from 'jsforce';
import * as oauth4webapi from 'oauth4webapi';
import * as openid from 'openid-client';
import OAuth2Strategy from 'passport-oauth2';
import { AuthTokenRefresh } from 'passport-oauth2-refresh';
import { AuthorizationCode } from 'simple-oauth2';

const clientId = 'client';
const clientSecret = 'secret';

/**
 * How an application gets an access token with each package, by its documentation: anew in each request, or from an object
 * that it keeps for each user.
 *
 * @typedef {{ access_token: string, refresh_token: string, expires_at: number }} Tokens
 * @typedef {{ read(): Promise<Tokens>, save(response: object): Promise<void> }} Store tokens of the one user
 * @type {Record<string, (origin: string, store: Store) => Promise<() => Promise<string>>>}
 */
export const PEERS = {
  'openid-client': async (origin, store) => {
    const server = { issuer: origin, token_endpoint: `${origin}/token` };
    const config = new openid.Configuration(server, clientId, clientSecret);
    openid.allowInsecureRequests(config);
    return loadRefreshSave(store, ({ refresh_token }) => openid.refreshTokenGrant(config, refresh_token));
  },
  oauth4webapi: async (origin, store) => {
    const [server, client] = [{ issuer: origin, token_endpoint: `${origin}/token` }, { client_id: clientId }];
    const insecure = { [oauth4webapi.allowInsecureRequests]: true };
    return loadRefreshSave(store, async ({ refresh_token }) => {
      const auth = oauth4webapi.ClientSecretPost(clientSecret);
      const sent = await oauth4webapi.refreshTokenGrantRequest(server, client, auth, refresh_token, insecure);
      return await oauth4webapi.processRefreshTokenResponse(server, client, sent);
    });
  },
  'simple-oauth2': async (origin, store) => {
    const client = new AuthorizationCode({
      client: { id: clientId, secret: clientSecret },
      auth: { tokenHost: origin, tokenPath: '/token' },
    });
    return loadRefreshSave(store, async (tokens) => (await client.createToken(tokens).refresh()).token);
  },
  'client-oauth2': async (origin, store) => {
    const client = new ClientOAuth2({ clientId, clientSecret, accessTokenUri: `${origin}/token` });
    return loadRefreshSave(store, async (tokens) => (await client.createToken(tokens).refresh()).data);
  },
  arctic: async (origin, store) => {
    const client = new ArcticClient(clientId, clientSecret, null);
    return loadRefreshSave(store, async ({ refresh_token }) => {
      return (await client.refreshAccessToken(`${origin}/token`, refresh_token, [])).data;
    });
  },
  'passport-oauth2-refresh': async (origin, store) => {
    const refresh = new AuthTokenRefresh();
    const addresses = { authorizationURL: `${origin}/authorize`, tokenURL: `${origin}/token` };
    refresh.use('peer', new OAuth2Strategy({ ...addresses, clientID: clientId, clientSecret }, () => {}));
    return loadRefreshSave(
      store,
      ({ refresh_token }) =>
        new Promise((resolve, reject) => {
          refresh.requestNewAccessToken('peer', refresh_token, (error, access_token, rotated, response) => {
            if (error) reject(error);
            else resolve({ ...response, access_token, refresh_token: rotated });
          });
        }),
    );
  },
  '@shopify/shopify-api': async (origin, store) => {
    // The shop's own host is the only address that it knows.
    setAbstractFetchFunc((url, options) => fetch(`${origin}${new URL(url).pathname}`, options));
    const shopify = shopifyApi({
      ...{ apiKey: clientId, apiSecretKey: clientSecret, apiVersion: ApiVersion.January26, hostName: 'app.example' },
      ...{ isEmbeddedApp: false, scopes: ['api'], logger: { log: () => {} } },
    });
    return loadRefreshSave(store, async ({ refresh_token: refreshToken }) => {
      const { session } = await shopify.auth.refreshToken({ shop: 'acme.myshopify.com', refreshToken });
      return { access_token: session.accessToken, refresh_token: session.refreshToken, expires_in: 7200 };
    });
  },
  '@octokit/auth-oauth-user': async (origin, store) => {
    const options = {
      clientType: 'github-app',
      clientId,
      clientSecret,
      request: request.defaults({ baseUrl: origin }),
    };
    return async () => {
      const { access_token: token, refresh_token: refreshToken, expires_at } = await store.read();
      const auth = createOAuthUserAuth({
        ...options,
        token,
        refreshToken,
        expiresAt: new Date(expires_at).toISOString(),
      });
      const now = await auth();
      if (now.token !== token)
        await store.save({ access_token: now.token, refresh_token: now.refreshToken, expires_in: 7200 });
      return now.token;
    };
  },
  'google-auth-library, a client for each request': async (origin, store) => async () =>
    await tokenOf(googleClient(origin, store, await store.read())),
  'google-auth-library, a client for each user': async (origin, store) => {
    const client = googleClient(origin, store, await store.read());
    return () => tokenOf(client);
  },
  'jsforce, a connection for each user': async (origin, store) => {
    const { access_token: accessToken, refresh_token: refreshToken } = await store.read();
    const oauth2 = new jsforce.OAuth2({ clientId, clientSecret, loginUrl: origin, tokenServiceUrl: `${origin}/token` });
    const connection = new jsforce.Connection({ oauth2, instanceUrl: origin, accessToken, refreshToken });
    connection.on('refresh', (_accessToken, response) => store.save(response));
    return async () => {
      await connection.request('/services/data');
      return connection.accessToken;
    };
  },
  'better-auth': async (origin, store) => {
    const { access_token: accessToken, refresh_token: refreshToken, expires_at } = await store.read();
    const at = new Date();
    const account = { id: '1', accountId: '1', providerId: 'peer', userId: '1', accessToken, refreshToken };
    const database = {
      ...{
        user: [{ id: '1', email: 'ada@example.com', emailVerified: true, name: 'Ada', createdAt: at, updatedAt: at }],
      },
      ...{ account: [{ ...account, accessTokenExpiresAt: new Date(expires_at), createdAt: at, updatedAt: at }] },
      ...{ session: [], verification: [] },
    };
    const provider = {
      providerId: 'peer',
      clientId,
      clientSecret,
      tokenUrl: `${origin}/token`,
      authorizationUrl: origin,
    };
    const auth = betterAuth({
      ...{
        baseURL: 'http://localhost:3000',
        secret: 'a secret of the comparison, long enough',
        logger: { disabled: true },
      },
      ...{ database: memoryAdapter(database), plugins: [genericOAuth({ config: [provider] })] },
    });
    return async () => (await auth.api.getAccessToken({ body: { accountId: '1', userId: '1' } })).accessToken;
  },
  '@badgateway/oauth2-client, an OAuth2Fetch for each request': async (origin, store) => async () =>
    await badgatewayFetch(origin, store).getAccessToken(),
  '@badgateway/oauth2-client, an OAuth2Fetch for each user': async (origin, store) => {
    const kept = badgatewayFetch(origin, store);
    return () => kept.getAccessToken();
  },
  '@badgateway/oauth2-client, the same in two processes': async (origin, store) =>
    inTurn([badgatewayFetch(origin, store), badgatewayFetch(origin, store)].map((kept) => () => kept.getAccessToken())),
};

/** Gives the calls to the functions in turn, as a load balancer does. */
export function inTurn(functions) {
  let calls = 0;
  return () => {
    calls += 1;
    return functions[calls % functions.length]();
  };
}

/** What applications write around a package that sends one request. */
function loadRefreshSave(store, refresh) {
  return async () => {
    const tokens = await store.read();
    if (tokens.expires_at > Date.now()) return tokens.access_token;
    const fresh = await refresh(tokens);
    await store.save(fresh);
    return fresh.access_token;
  };
}

function googleClient(origin, store, { access_token, refresh_token, expires_at: expiry_date }) {
  const client = new GoogleClient({ clientId, clientSecret, endpoints: { oauth2TokenUrl: `${origin}/token` } });
  client.setCredentials({ access_token, refresh_token, expiry_date });
  client.on('tokens', (response) => store.save(response));
  return client;
}

async function tokenOf(client) {
  return (await client.getAccessToken()).token;
}

function badgatewayFetch(origin, store) {
  const client = new BadgatewayClient({ server: origin, clientId, clientSecret, tokenEndpoint: '/token' });
  return new OAuth2Fetch({
    client,
    scheduleRefresh: false,
    getNewToken: async () => null,
    getStoredToken: async () => {
      const { access_token: accessToken, refresh_token: refreshToken, expires_at: expiresAt } = await store.read();
      return { accessToken, refreshToken, expiresAt };
    },
    storeToken: async ({ accessToken, refreshToken }) => {
      await store.save({ access_token: accessToken, refresh_token: refreshToken, expires_in: 7200 });
    },
  });
}
