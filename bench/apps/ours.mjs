import express from 'express';
import session from 'express-session';
import passport from 'passport';
import { apiClient, logout, requireAuthorization, Strategy } from '../../dist/index.js';
import { redisTokenStore } from '../../dist/redis.js';
import { fastClock } from '../lib/fast-clock.mjs';
import { strategyOptions } from '../lib/strategy-options.mjs';
import { answerHome, SESSION } from './common.mjs';
import { countEvents } from './event-counts.mjs';

/**
 * An application as the README shows it.
 *
 * @param {{ time?: { start: number, speed: number }, cache?: false }} options `time`: for a soak, in which time goes faster
 */
export function createApp({ store, redis, service, origin, time, cache }) {
  const strategy = new Strategy({
    ...strategyOptions(service, origin),
    tokenStore: redis && redisTokenStore(redis),
    clock: time && fastClock(time),
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
  app.get('/late', async (req, res) => {
    req.session.visits = (req.session.visits ?? 0) + 1;
    await new Promise((resolve) => setTimeout(resolve, Number(req.query.ms)));
    res.json({});
  });
  app.post('/logout', logout(strategy), (_req, res) => res.json({}));
  return { handler: app, tasks: time && { events: countEvents() } };
}
