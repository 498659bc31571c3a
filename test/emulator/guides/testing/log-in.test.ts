import { type Emulator, startEmulator } from 'passport-oauth-app/emulator';
import request from 'supertest';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { createApp } from './app.js';

const callbackURL = 'http://localhost:3000/callback';
let service: Emulator;
let app: ReturnType<typeof createApp>;

beforeEach(async () => {
  service = await startEmulator();
  app = createApp({ ...service.options, callbackURL, scope: ['project'] });
});
afterEach(() => service.close());

test('a user sees their own projects after the login', async () => {
  const agent = request.agent(app);
  const response = await service.logIn(agent);
  expect(response.status).toBe(200);
  expect(response.body.data[0].data.name).toBe('Pocket Garden');
});

test('a member of an organization is served by the host of that organization', async () => {
  const agent = request.agent(app);
  await service.logIn(agent, { user: '2' });
  expect(service.requests.at(-1)?.headers.host).toMatch(/^acme\.api\.localhost:/);
});

test('a user who declines sees that the application knows', async () => {
  const response = await service.logIn(request.agent(app), { decline: true });
  expect(response.text).toBe('You declined.');
});
