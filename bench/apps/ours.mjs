import { apiClient, forward, requireAuthorization, Strategy } from '../../dist/index.js';
import { redisTokenStore } from '../../dist/redis.js';
import { strategyOptions } from '../lib/seeded-grant.mjs';
import { answerHome, answerLate, loginApp } from './common.mjs';

/** An application as the README shows it. @param {{ cache?: false | object }} options */
export function createApp({ store, redis, service, origin, cache }) {
  const tokenStore = redis && redisTokenStore(redis);
  const strategy = new Strategy({ ...strategyOptions(service, origin), tokenStore, cache });
  const { app, auth } = loginApp({ store, strategy });
  app.use(apiClient(strategy));
  app.get('/login', auth.authenticate('oauth-app'));
  app.get('/callback', auth.authenticate('oauth-app', { successRedirect: '/' }));
  app.get('/', answerHome);
  app.get('/projects', requireAuthorization(), async (req, res) => res.json(await req.apiClient.projects()));
  app.use('/api', requireAuthorization(), forward(strategy, { allow: ['GET /projects'] }));
  app.get('/late', answerLate());
  return { handler: app };
}
