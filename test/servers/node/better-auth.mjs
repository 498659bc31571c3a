// better-auth with its plugin @better-auth/oauth-provider, as its documentation says: https://www.better-auth.com/docs/plugins/oauth-provider
import { oauthProvider } from '@better-auth/oauth-provider';
import { betterAuth } from 'better-auth';
import { memoryAdapter } from 'better-auth/adapters/memory';
import { toNodeHandler } from 'better-auth/node';
import { jwt } from 'better-auth/plugins';
import { place, serve } from './serve.mjs';

const { client, origin, users } = place;
const database = {};
for (const table of [
  ...['user', 'session', 'account', 'verification', 'jwks', 'rateLimit'],
  ...['oauthClient', 'oauthResource', 'oauthClientResource', 'oauthRefreshToken', 'oauthAccessToken', 'oauthConsent'],
  'oauthClientAssertion',
]) {
  database[table] = [];
}
const auth = betterAuth({
  baseURL: origin,
  secret: 'a key of the tests, of thirty-two characters',
  database: memoryAdapter(database),
  emailAndPassword: { enabled: true },
  rateLimit: { enabled: false },
  telemetry: { enabled: false },
  plugins: [
    jwt(),
    oauthProvider({
      loginPage: '/sign-in',
      consentPage: '/consent',
      silenceWarnings: { oauthAuthServerConfig: true, openidConfig: true },
      generateClientId: () => client.id,
      generateClientSecret: () => client.secret,
    }),
  ],
});
const cookies = [];
for (const { name, password } of users) {
  const { headers } = await auth.api.signUpEmail({
    body: { name, email: `${name}@example.com`, password },
    returnHeaders: true,
  });
  cookies.push(headers.getSetCookie().map((cookie) => cookie.split(';')[0]));
}
// A user who is logged in registers the client.
await auth.api.createOAuthClient({
  headers: new Headers({ cookie: cookies[0].join('; ') }),
  body: {
    // Only such a client may have a redirect URL on loopback.
    application_type: 'native',
    redirect_uris: [client.redirectUri],
    grant_types: ['authorization_code', 'refresh_token'],
    response_types: ['code'],
    token_endpoint_auth_method: 'client_secret_post',
    scope: 'openid offline_access',
  },
});
const handle = toNodeHandler(auth);
// The pages at /sign-in and /consent belong to the application. They call the API as the browser of the tests does.
serve((req, res) => (req.url.startsWith('/api/auth/') ? handle(req, res) : res.end()));
