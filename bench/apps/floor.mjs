import { randomBytes } from 'node:crypto';
import { Pool } from 'undici';
import { JsonAnswer } from '../lib/json-answer.mjs';
import { answerHome, loginApp } from './common.mjs';

const LEEWAY_MS = 30_000;
const PROJECTS = { path: '/api/v2/projects', method: 'GET' };
const TOKEN = { path: '/oauth/token', method: 'POST' };

/**
 * The floor: the least code on Express, express-session and Passport that does the job. Tokens in a Map by session id, undici's
 * dispatcher, one refresh for each user, a state in the session. No other checks, no limits, and the tokens end with the process.
 */
export function createApp({ store, service, origin }) {
  const pool = new Pool(service.url);
  const tokens = new Map();
  const { app, auth } = loginApp({ store, strategy: strategyOf(pool, service, origin) });
  app.get('/login', auth.authenticate('floor'));
  app.get('/callback', auth.authenticate('floor'), (req, res) => {
    tokens.set(req.sessionID, req.user.tokens);
    res.redirect('/');
  });
  app.get('/', async (req, res) => {
    await freshToken(req.sessionID);
    answerHome(req, res);
  });
  app.get('/projects', async (req, res) => {
    const authorization = `Bearer ${await freshToken(req.sessionID)}`;
    res.json(await dispatch(pool, { ...PROJECTS, headers: ['authorization', authorization] }));
  });
  app.use('/api', async (req, res) => {
    const authorization = `Bearer ${await freshToken(req.sessionID)}`;
    const sent = { authorization, accept: req.headers.accept ?? '*/*' };
    const request = { path: `/api/v2${req.url}`, method: req.method, headers: sent };
    const { statusCode, headers, body } = await pool.request(request);
    const [type, length] = ['content-type', 'content-length'];
    body.pipe(res.writeHead(statusCode, { [type]: headers[type], [length]: headers[length] }));
  });
  return { handler: app };

  function freshToken(id) {
    const current = tokens.get(id);
    if (current === undefined || current.expiresAt - Date.now() > LEEWAY_MS) return current?.accessToken;
    current.refreshing ??= refresh(id, current);
    return current.refreshing;
  }

  async function refresh(id, { refreshToken }) {
    const fields = { grant_type: 'refresh_token', refresh_token: refreshToken };
    const fresh = tokensOf(await askForTokens(pool, service, fields));
    tokens.set(id, fresh);
    return fresh.accessToken;
  }
}

function strategyOf(pool, service, origin) {
  const redirect_uri = `${origin}/callback`;
  const fields = { client_id: service.clientID, redirect_uri, response_type: 'code', scope: 'project' };
  const url = `${service.url}/oauth/authorize?${new URLSearchParams(fields)}`;
  return {
    name: 'floor',
    authenticate(req) {
      const { code, state } = req.query;
      if (code === undefined) {
        req.session.state = randomBytes(16).toString('base64url');
        return this.redirect(`${url}&state=${req.session.state}`);
      }
      if (state !== req.session.state) return this.fail(403);
      const fields = { grant_type: 'authorization_code', redirect_uri, code };
      askForTokens(pool, service, fields).then(
        (answer) => this.success({ id: subjectOf(answer.access_token), tokens: tokensOf(answer) }),
        (error) => this.error(error),
      );
    },
  };
}

function askForTokens(pool, { clientID, clientSecret }, fields) {
  const body = JSON.stringify({ client_id: clientID, client_secret: clientSecret, ...fields });
  return dispatch(pool, { ...TOKEN, headers: ['content-type', 'application/json'], body });
}

function tokensOf({ access_token: accessToken, refresh_token: refreshToken, expires_in: lifetimeS }) {
  return { accessToken, refreshToken, expiresAt: Date.now() + lifetimeS * 1000 };
}

function subjectOf(accessToken) {
  return JSON.parse(Buffer.from(accessToken.split('.')[1], 'base64url').toString()).sub;
}

function dispatch(pool, options) {
  return new Promise((resolve, reject) => pool.dispatch(options, new JsonAnswer(resolve, reject)));
}
