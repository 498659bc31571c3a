// @node-oauth/oauth2-server with Express, as its documentation says: https://node-oauthoauth2-server.readthedocs.io
import OAuth2Server from '@node-oauth/oauth2-server';
import express from 'express';
import { consentPage, place, serve, userOf } from './serve.mjs';

const { Request, Response } = OAuth2Server;
const client = {
  id: place.client.id,
  redirectUris: [place.client.redirectUri],
  grants: ['authorization_code', 'refresh_token'],
};
const codes = new Map();
const tokens = new Set();

/** The model that the documentation describes; it rotates refresh tokens unless told otherwise. */
const model = {
  getClient: async (id, secret) =>
    id === client.id && (secret === null || secret === place.client.secret) ? client : false,
  validateScope: async (_user, _client, scope) => scope ?? [],
  saveAuthorizationCode: async (code, itsClient, user) => {
    const saved = { ...code, client: itsClient, user };
    codes.set(code.authorizationCode, saved);
    return saved;
  },
  getAuthorizationCode: async (code) => codes.get(code),
  revokeAuthorizationCode: async ({ authorizationCode }) => codes.delete(authorizationCode),
  saveToken: async (token, itsClient, user) => {
    const saved = { ...token, client: itsClient, user };
    tokens.add(saved);
    return saved;
  },
  getAccessToken: async (token) => [...tokens].find(({ accessToken }) => accessToken === token),
  getRefreshToken: async (token) => [...tokens].find(({ refreshToken }) => refreshToken === token),
  revokeToken: async (token) =>
    tokens.delete([...tokens].find(({ refreshToken }) => refreshToken === token.refreshToken)),
};
const oauth = new OAuth2Server({ model });

const app = express();
app.use(express.urlencoded({ extended: false }));
app.get('/authorize', (_req, res) => res.send(consentPage));
app.post('/authorize', async (req, res) => {
  // `allowed` is read from the query or the body; `false` denies.
  const response = new Response(res);
  const authenticateHandler = { handle: ({ body }) => userOf(body) };
  await oauth.authorize(new Request(req), response, { authenticateHandler }).catch(() => undefined);
  res.redirect(response.get('location'));
});
app.post('/token', async (req, res) => {
  const response = new Response(res);
  await oauth.token(new Request(req), response).catch(() => undefined);
  res.status(response.status).set(response.headers).json(response.body);
});
app.get('/me', async (req, res) => {
  const response = new Response(res);
  const token = await oauth.authenticate(new Request(req), response).catch(() => undefined);
  if (token) res.json({ id: token.user.id });
  else res.sendStatus(401);
});
// The library has no revocation endpoint: an application deletes what its user disconnects.
app.delete('/authorizations/:user', (req, res) => {
  for (const token of tokens) if (token.user.id === req.params.user) tokens.delete(token);
  res.sendStatus(204);
});
serve(app);
