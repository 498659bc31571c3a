// @jmondi/oauth2-server with Express, as its documentation says: https://tsoauth2server.com
import { randomBytes } from 'node:crypto';
import { AuthorizationServer, DateInterval } from '@jmondi/oauth2-server';
import { handleExpressError, handleExpressResponse, requestFromExpress } from '@jmondi/oauth2-server/express';
import express from 'express';
import { consentPage, place, serve, userOf } from './serve.mjs';

const client = {
  id: place.client.id,
  name: 'Application',
  secret: place.client.secret,
  redirectUris: [place.client.redirectUri],
  // The revocation endpoint asks for client_credentials too.
  allowedGrants: ['authorization_code', 'refresh_token', 'client_credentials'],
  scopes: [],
};
const codes = new Map();
const tokens = new Set();
const random = () => randomBytes(32).toString('base64url');
const found = (value) => {
  if (!value) throw new Error('not found');
  return value;
};

const clients = {
  getByIdentifier: async (id) => found(id === client.id && client),
  isClientValid: async (grant, { allowedGrants }, secret) => allowedGrants.includes(grant) && secret === client.secret,
};
const authorizationCodes = {
  getByIdentifier: async (code) => found(codes.get(code)),
  issueAuthCode: (itsClient, user, scopes) => ({
    ...{ code: random(), client: itsClient, user, scopes },
    expiresAt: new DateInterval('15m').getEndDate(),
  }),
  persist: async (code) => void codes.set(code.code, code),
  isRevoked: async (code) => !codes.has(code),
  revoke: async (code) => void codes.delete(code),
};
const tokenRepository = {
  issueToken: async (itsClient, scopes, user) => ({
    ...{ accessToken: random(), client: itsClient, user, scopes },
    accessTokenExpiresAt: new DateInterval('1h').getEndDate(),
  }),
  issueRefreshToken: async (token) =>
    Object.assign(token, { refreshToken: random(), refreshTokenExpiresAt: new DateInterval('30d').getEndDate() }),
  persist: async (token) => void tokens.add(token),
  // The repository knows revoked tokens still, or the library answers 500.
  revoke: async (token) => void Object.assign(token, { isRevoked: true }),
  isRefreshTokenRevoked: async ({ isRevoked }) => isRevoked === true,
  getByRefreshToken: async (token) => found([...tokens].find(({ refreshToken }) => refreshToken === token)),
  getByAccessToken: async (token) => found([...tokens].find(({ accessToken }) => accessToken === token)),
};
const users = {
  getUserByCredentials: async (id) => place.users.some(({ name }) => name === id) && { id },
};
const scopes = { getAllByIdentifiers: async () => [], finalize: async (asked) => asked };

const server = new AuthorizationServer(clients, tokenRepository, scopes, random(), {
  requiresPKCE: false,
  requiresS256: false,
});
server.enableGrantTypes(
  { grant: 'authorization_code', authCodeRepository: authorizationCodes, userRepository: users },
  'refresh_token',
);

const app = express();
app.use(express.urlencoded({ extended: false }));
const answer = (respond) => async (req, res) => {
  try {
    handleExpressResponse(res, await respond(req));
  } catch (error) {
    handleExpressError(error, res);
  }
};
app.get('/authorize', (_req, res) => res.send(consentPage));
app.post(
  '/authorize',
  answer(async (req) => {
    const request = await server.validateAuthorizationRequest(requestFromExpress(req));
    request.user = userOf(req.body);
    request.isAuthorizationApproved = req.body.allowed === 'true';
    if (request.isAuthorizationApproved) return server.completeAuthorizationRequest(request);
    // The library throws here, and leaves the redirect to the application.
    const location = new URL(request.redirectUri);
    location.search = new URLSearchParams({ error: 'access_denied', state: request.state });
    return { status: 302, headers: { location: location.href }, body: {} };
  }),
);
app.post(
  '/token',
  answer((req) => server.respondToAccessTokenRequest(requestFromExpress(req))),
);
app.post(
  '/token/revoke',
  answer((req) => server.revoke(requestFromExpress(req))),
);
// An API of this server: the token is a JWT of its own, which it has to know still.
app.get('/me', async (req, res) => {
  const [, token = ''] = (req.get('authorization') ?? '').split(' ');
  const { jti } = JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url') || '{}');
  const known = [...tokens].find(({ accessToken, isRevoked }) => accessToken === jti && !isRevoked);
  if (known) res.json({ id: known.user.id });
  else res.sendStatus(401);
});
serve(app);
