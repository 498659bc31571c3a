import express from 'express';
import oidc from 'express-openid-connect';
import { answerLate } from './common.mjs';

/**
 * express-openid-connect, for services that speak OpenID Connect: tokens in its own session.
 *
 * @param {{ store?: object }} options `store`: where sessions are kept; in a sealed cookie without it
 */
export function createApp({ store, service, origin }) {
  const app = express();
  app.use(
    oidc.auth({
      issuerBaseURL: service.url,
      baseURL: origin,
      clientID: service.clientID,
      clientSecret: service.clientSecret,
      clientAuthMethod: 'client_secret_post',
      idTokenSigningAlg: 'HS256',
      secret: 'bench session secret that is long enough',
      authRequired: false,
      enableTelemetry: false,
      authorizationParams: { response_type: 'code', scope: 'openid project' },
      session: store && { store },
    }),
  );
  app.get('/', refreshIfExpired, (req, res) => {
    if (req.oidc.isAuthenticated()) res.json({ user: req.oidc.user.sub });
    else res.status(401).json({});
  });
  app.get('/projects', oidc.requiresAuth(), refreshIfExpired, async (req, res) => {
    const headers = { authorization: `Bearer ${req.oidc.accessToken.access_token}` };
    const answer = await fetch(`${service.url}/api/v2/projects`, { headers });
    res.status(answer.status).json(await answer.json());
  });
  app.get('/late', answerLate('appSession'));
  return { handler: app };
}

async function refreshIfExpired(req, _res, next) {
  try {
    if (req.oidc.accessToken?.isExpired()) await req.oidc.accessToken.refresh();
    next();
  } catch (error) {
    next(error);
  }
}
