import express from 'express';
import session from 'express-session';
import passport from 'passport';
import { apiClient, requireAuthorization, Strategy } from 'passport-oauth-app';
import { startEmulator } from 'passport-oauth-app/emulator';
import request from 'supertest';

let service;
let strategy;
beforeAll(async () => {
  service = await startEmulator();
  strategy = new Strategy({ ...service.options, callbackURL: 'http://localhost:3000/callback', scope: 'project' });
});
afterAll(async () => {
  await strategy.close();
  await service.close();
});

test('a user sees their projects after the login', async () => {
  passport.use(strategy);
  passport.serializeUser((user, done) => done(null, user));
  passport.deserializeUser((user, done) => done(null, user));
  const app = express();
  app.use(session({ secret: 'only for tests', resave: false, saveUninitialized: false }));
  app.use(passport.session(), apiClient(strategy));
  app.get('/login', passport.authenticate('oauth-app'));
  app.get('/callback', passport.authenticate('oauth-app', { successReturnToOrRedirect: '/projects' }));
  app.get('/projects', requireAuthorization({ login: '/login' }), (req, res, next) => {
    req.apiClient
      .projects()
      .then((projects) => res.json(projects))
      .catch(next);
  });

  const agent = request.agent(app);
  const response = await service.logIn(agent);
  expect(response.body.data).not.toHaveLength(0);

  // The next morning: the first request refreshes.
  jest.useFakeTimers({
    now: Date.now() + 8 * 60 * 60 * 1000,
    // Everything except the date.
    doNotFake: [
      'setTimeout',
      'clearTimeout',
      'setInterval',
      'clearInterval',
      'setImmediate',
      'clearImmediate',
      'nextTick',
      'queueMicrotask',
      'hrtime',
      'performance',
    ],
  });
  expect((await agent.get('/projects')).status).toBe(200);
  jest.useRealTimers();
});
