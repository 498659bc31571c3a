import { emulatorTest } from 'passport-oauth-app/emulator/vitest';
import request from 'supertest';
import { expect } from 'vitest';
import { createApp } from '../testing/app.js';

const test = emulatorTest({ accessTokenLifetime: 600 });
const callbackURL = 'http://localhost:3000/callback';

test('an outage of the service is a 503', async ({ service }) => {
  const agent = request.agent(createApp({ ...service.options, callbackURL, scope: ['project'] }));
  expect((await service.logIn(agent)).status).toBe(200);
  service.expireAccessTokens();
  service.fail('token', { status: 503 });
  expect((await agent.get('/projects')).status).toBe(503);
});

test('the next test has a fresh service', ({ service }) => {
  expect(service.requests).toEqual([]);
});
