import { type Emulator, startEmulator } from 'passport-oauth-app/emulator';
import request, { type Agent } from 'supertest';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { createApp } from './app.js';

const callbackURL = 'http://localhost:3000/callback';
let service: Emulator;
let agent: Agent;

beforeEach(async () => {
  service = await startEmulator();
  agent = request.agent(createApp({ ...service.options, callbackURL, scope: ['project'] }));
  await service.logIn(agent);
  service.requests.length = 0;
});
afterEach(() => service.close());

const refreshes = () => service.requests.filter(({ path }) => path === '/oauth/token').length;

test('many requests with an expired token make one refresh, and all succeed', async () => {
  service.expireAccessTokens();
  const responses = await Promise.all(Array.from({ length: 20 }, () => agent.get('/projects')));
  expect(responses.map(({ status }) => status)).toEqual(Array(20).fill(200));
  expect(refreshes()).toBe(1);
});

test('an outage is a 503, and afterwards the application continues without a new login', async () => {
  service.expireAccessTokens();
  service.fail('token', { status: 503, headers: { 'retry-after': '1' } });
  expect((await agent.get('/projects')).status).toBe(503);
  await expect.poll(async () => (await agent.get('/projects')).status, { timeout: 30_000, interval: 250 }).toBe(200);
});

test('a response that is lost after the rotation leads to a new login, not to a loop', async () => {
  service.expireAccessTokens();
  service.fail('token', { afterEffect: true });
  expect((await agent.get('/projects')).status).toBe(503);
  const next = () => agent.get('/projects').set('accept', 'text/html');
  const redirect = async () => (await next()).headers.location;
  await expect.poll(redirect, { timeout: 30_000, interval: 250 }).toMatch(/^\/login/);
});
