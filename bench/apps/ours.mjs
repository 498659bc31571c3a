import express from 'express';
import session from 'express-session';
import passport from 'passport';
import { apiClient, forward, requireAuthorization, Strategy } from '../../dist/index.js';
import { redisTokenStore } from '../../dist/redis.js';
import { strategyOptions } from '../lib/strategy-options.mjs';
import { answerHome, SESSION } from './common.mjs';

/** An application as the README shows it. @param {{ cache?: false | object }} options */
export function createApp({ store, redis, service, origin, cache }) {
  const strategy = new Strategy({
    ...strategyOptions(service, origin),
    tokenStore: redis && redisTokenStore(redis),
    cache,
  });
  const auth = new passport.Passport();
  auth.use(strategy);
  auth.serializeUser((user, done) => done(null, user.id));
  auth.deserializeUser((id, done) => done(null, { id }));
  const app = express();
  app.use(session({ ...SESSION, store }), auth.session(), apiClient(strategy));
  app.get('/login', auth.authenticate('oauth-app'));
  app.get('/callback', auth.authenticate('oauth-app', { successRedirect: '/' }));
  app.get('/', answerHome);
  app.get('/projects', requireAuthorization(), async (req, res) => res.json(await req.apiClient.projects()));
  app.use('/api', requireAuthorization(), forward(strategy, { allow: ['GET /projects'] }));
  app.get('/late', async (req, res) => {
    req.session.visits = (req.session.visits ?? 0) + 1;
    await new Promise((resolve) => setTimeout(resolve, Number(req.query.ms)));
    res.json({});
  });
  return { handler: app };
}
