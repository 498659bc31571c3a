import express from 'express';
import session from 'express-session';
import { Passport } from 'passport';
import { apiClient, requireAuthorization, Strategy } from 'passport-oauth-app';
import request from 'supertest';
import { MockAgent } from 'undici';
import { expect, onTestFinished, test } from 'vitest';

test('a MockAgent of undici takes the place of the service: a logged-in user sees how many projects there are', async () => {
  const service = new MockAgent();
  service.disableNetConnect();
  const token = { access_token: 'any', token_type: 'bearer', expires_in: 7200, refresh_token: 'other' };
  service.get('https://auth.example.com').intercept({ path: '/oauth/token', method: 'POST' }).reply(200, token);
  const projects = { data: [{ data: { id: 7 } }, { data: { id: 8 } }] };
  service.get('https://api.example.com').intercept({ path: '/api/v2/projects' }).reply(200, projects);

  const browser = request.agent(createApp(service));
  const login = await browser.get('/login');
  const state = new URL(login.headers.location ?? '').searchParams.get('state');
  await browser.get('/callback').query({ code: 'any', state });
  const { text } = await browser.get('/count');

  expect(text).toBe('2');
  service.assertNoPendingInterceptors();
});

function createApp(dispatcher: MockAgent): express.Express {
  const passport = new Passport();
  const strategy = new Strategy({
    authUrl: 'https://auth.example.com',
    baseUrl: 'https://api.example.com',
    clientID: 'id',
    clientSecret: 'a secret of the tests',
    callbackURL: 'http://localhost:3000/callback',
    scope: 'project',
    dispatcher,
  });
  onTestFinished(() => strategy.close());
  passport.use(strategy);
  passport.serializeUser((user, done) => done(null, user));
  passport.deserializeUser((user: Express.User, done) => done(null, user));
  return express()
    .use(session({ secret: 'for tests', resave: false, saveUninitialized: false }))
    .use(passport.session())
    .use(apiClient(strategy))
    .get('/login', passport.authenticate('oauth-app'))
    .get('/callback', passport.authenticate('oauth-app', { successRedirect: '/' }))
    .get('/count', requireAuthorization(), (req, res, next) => {
      const projects = req.apiClient.projects<{ data: unknown[] }>();
      projects.then(({ data }) => res.send(String(data.length))).catch(next);
    });
}
