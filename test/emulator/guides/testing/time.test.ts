import { startEmulator } from 'passport-oauth-app/emulator';
import request from 'supertest';
import { afterEach, expect, test, vi } from 'vitest';
import { createApp } from './app.js';

afterEach(() => void vi.useRealTimers());

test('the next morning, the first request refreshes', async () => {
  const service = await startEmulator();
  const options = { ...service.options, callbackURL: 'http://localhost:3000/callback', scope: 'project' };
  const agent = request.agent(createApp(options));
  await service.logIn(agent);
  service.requests.length = 0;

  vi.useFakeTimers({ toFake: ['Date'] });
  vi.setSystemTime(Date.now() + 8 * 60 * 60 * 1000);
  expect((await agent.get('/projects')).status).toBe(200);
  expect(service.requests.map(({ path }) => path)).toEqual(['/oauth/token', '/api/v2/projects']);
  await service.close();
});
