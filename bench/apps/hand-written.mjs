import OAuth2Strategy from 'passport-oauth2';
import { answerHome, answerLate, loginApp } from './common.mjs';

const LEEWAY_MS = 30_000;

/**
 * What one writes with passport-oauth2: tokens in the session, beside the user; a middleware that refreshes them when they have
 * expired; fetch.
 *
 * @param {{ singleFlight?: boolean, forms?: boolean }} options `singleFlight`: refreshes of one token that are asked for at once
 *   are one; `forms`: for a service that takes them, so that passport-oauth2 exchanges the code by itself, and not by fetch
 */
export function createApp({ store, service, origin, singleFlight = false, forms = false }) {
  const { app, auth } = loginApp({ store, strategy: strategyOf(service, origin, forms), keepsUser: true });
  const refresh = singleFlight ? onceAtATime(refreshTokens) : refreshTokens;
  const fresh = freshTokens(service, refresh);
  app.get('/login', auth.authenticate('oauth2'));
  app.get('/callback', auth.authenticate('oauth2', { successRedirect: '/' }));
  app.get('/', fresh, answerHome);
  app.get('/projects', fresh, async (req, res) => {
    const headers = { authorization: `Bearer ${req.user.accessToken}` };
    const answer = await fetch(`${service.url}/api/v2/projects`, { headers });
    res.status(answer.status).json(await answer.json());
  });
  app.get('/late', answerLate());
  return { handler: app };
}

function strategyOf(service, origin, forms) {
  const { clientID, clientSecret, url } = service;
  const strategy = new OAuth2Strategy(
    {
      authorizationURL: `${url}/oauth/authorize`,
      tokenURL: `${url}/oauth/token`,
      clientID,
      clientSecret,
      callbackURL: `${origin}/callback`,
      scope: 'project',
      state: true,
    },
    (_accessToken, _refreshToken, params, _profile, done) => done(null, userOf(params)),
  );
  if (forms) return strategy;
  // The service takes JSON, and passport-oauth2 sends forms.
  strategy._oauth2.getOAuthAccessToken = (code, { redirect_uri }, callback) => {
    askForTokens(service, { grant_type: 'authorization_code', redirect_uri, code }).then(
      (params) => callback(null, params.access_token, params.refresh_token, params),
      callback,
    );
  };
  return strategy;
}

function freshTokens(service, refresh) {
  return async function refreshIfExpired(req, _res, next) {
    if (!req.user || req.user.expiresAt - Date.now() > LEEWAY_MS) return next();
    try {
      req.user = await refresh(service, req.user);
      req.session.passport.user = req.user;
      next();
    } catch (error) {
      next(error);
    }
  };
}

async function refreshTokens(service, user) {
  const params = await askForTokens(service, { grant_type: 'refresh_token', refresh_token: user.refreshToken });
  return { ...userOf(params), id: user.id };
}

function onceAtATime(refresh) {
  const underWay = new Map();
  return function joined(service, user) {
    const key = user.refreshToken;
    const begin = () => refresh(service, user).finally(() => underWay.delete(key));
    if (!underWay.has(key)) underWay.set(key, begin());
    return underWay.get(key);
  };
}

async function askForTokens({ url, clientID, clientSecret }, fields) {
  const answer = await fetch(`${url}/oauth/token`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ client_id: clientID, client_secret: clientSecret, ...fields }),
  });
  if (!answer.ok) throw new Error(`The token endpoint answered with ${answer.status}`);
  return await answer.json();
}

function userOf({ access_token: accessToken, refresh_token: refreshToken, expires_in: lifetimeS }) {
  const { sub } = JSON.parse(Buffer.from(accessToken.split('.')[1], 'base64url').toString());
  return { id: sub, accessToken, refreshToken, expiresAt: Date.now() + lifetimeS * 1000 };
}
