import { startEmulator } from 'passport-oauth-app/emulator';
import request from 'supertest';
import { expect, test } from 'vitest';
import { createApp } from './app.js';

test('users, projects, routes and time are the test’s own', async () => {
  const service = await startEmulator({
    accessTokenLifetime: 3600,
    users: [{ id: 'u1', name: 'Mara', domain: 'globex', projects: [{ id: 1, name: 'Site', progress: 40 }] }],
    routes: [{ method: 'GET', path: '/projects/:id', handler: ({ params }) => ({ data: { id: params.id } }) }],
  });
  const app = createApp({ ...service.options, callbackURL: 'http://localhost:3000/callback', scope: 'project' });
  app.get('/projects/:id', (req, res, next) => {
    req.apiClient
      .get(`/projects/${req.params.id}`)
      .then((project) => res.json(project))
      .catch(next);
  });
  const agent = request.agent(app);
  await service.logIn(agent);
  expect((await agent.get('/projects')).body.data).toEqual([{ data: { id: 1, name: 'Site', progress: 40 } }]);
  expect((await agent.get('/projects/7')).body).toEqual({ data: { id: '7' } });

  // Time moves for the service only; a 401 tells the application that its token has expired.
  service.advance(3600);
  expect((await agent.get('/projects')).status).toBe(200);
  expect(service.requests.filter(({ path }) => path === '/oauth/token')).toHaveLength(2);
  await service.close();
});
