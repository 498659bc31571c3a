// oauth2orize with Express and Passport, as its README says: https://github.com/jaredhanson/oauth2orize
import { randomBytes } from 'node:crypto';
import express from 'express';
import session from 'express-session';
import oauth2orize from 'oauth2orize';
import passport from 'passport';
import { BasicStrategy } from 'passport-http';
import { Strategy as BearerStrategy } from 'passport-http-bearer';
import { Strategy as ClientPasswordStrategy } from 'passport-oauth2-client-password';
import { consentPage, place, serve, userOf } from './serve.mjs';

const { client } = place;
const codes = new Map();
/** Users by their access tokens and refresh tokens. */
const [accessTokens, refreshTokens] = [new Map(), new Map()];
const random = () => randomBytes(32).toString('base64url');
const issue = (user, done) => {
  const [accessToken, refreshToken] = [random(), random()];
  accessTokens.set(accessToken, user);
  refreshTokens.set(refreshToken, user);
  done(null, accessToken, refreshToken, { expires_in: 3600 });
};

const server = oauth2orize.createServer();
server.serializeClient(({ id }, done) => done(null, id));
server.deserializeClient((_id, done) => done(null, client));
server.grant(
  oauth2orize.grant.code((_client, _redirectUri, user, _answer, done) => {
    const code = random();
    codes.set(code, user);
    done(null, code);
  }),
);
server.exchange(
  oauth2orize.exchange.code((_client, code, redirectUri, done) => {
    const user = codes.get(code);
    if (!codes.delete(code) || redirectUri !== client.redirectUri) return done(null, false);
    issue(user, done);
  }),
);
server.exchange(
  oauth2orize.exchange.refreshToken((_client, refreshToken, _scope, done) => {
    const user = refreshTokens.get(refreshToken);
    // A refresh token is used once.
    if (!refreshTokens.delete(refreshToken)) return done(null, false);
    issue(user, done);
  }),
);

const authenticateClient = (id, secret, done) => done(null, id === client.id && secret === client.secret && client);
passport.use(new BasicStrategy(authenticateClient));
passport.use(new ClientPasswordStrategy(authenticateClient));
passport.use(new BearerStrategy((token, done) => done(null, accessTokens.get(token) ?? false)));

const app = express();
app.use(express.urlencoded({ extended: false }));
app.use(session({ secret: random(), resave: false, saveUninitialized: false }));
app.get(
  '/authorize',
  server.authorize((id, redirectUri, done) =>
    done(null, id === client.id && redirectUri === client.redirectUri && client, redirectUri),
  ),
  (req, res) => {
    const transaction = `<input type="hidden" name="transaction_id" value="${req.oauth2.transactionID}">`;
    res.send(consentPage.replace('<form method="post">', `<form method="post" action="/decision">${transaction}`));
  },
);
app.post(
  '/decision',
  (req, _res, next) => {
    req.user = userOf(req.body);
    if (req.body.allowed === 'false') req.body.cancel = 'Deny';
    next();
  },
  ...server.decision(),
);
app.post(
  '/token',
  passport.authenticate(['basic', 'oauth2-client-password'], { session: false }),
  server.token(),
  server.errorHandler(),
);
app.get('/me', passport.authenticate('bearer', { session: false }), (req, res) => res.json(req.user));
// The library has no revocation endpoint: an application deletes what its user disconnects.
app.delete('/authorizations/:user', (req, res) => {
  for (const tokens of [accessTokens, refreshTokens]) {
    for (const [token, { id }] of tokens) if (id === req.params.user) tokens.delete(token);
  }
  res.sendStatus(204);
});
serve(app);
