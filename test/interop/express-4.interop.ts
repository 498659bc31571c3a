import { afterAll, beforeAll, expect, test } from 'vitest';
import { startEmulator } from '../../src/emulator/index.js';
import { type Packed, pack } from '../consumers/packed.js';
import { createProject } from '../consumers/project.js';
import { readmeApplication, startApplication } from '../consumers/stranger.js';
import { freePort } from '../support/service-process.js';
import { threats } from '../support/threats.js';

let packed: Packed;
beforeAll(async () => {
  packed = await pack();
});
afterAll(() => packed.remove());

test('the application of README.md outlives a failed API call under Express 4', threats(98), async () => {
  const express = 'express=../test/interop/node_modules/express';
  const project = await createProject(packed, [express, 'express-session', 'passport']);
  const port = await freePort();
  const service = await startEmulator();
  service.register({ clientID: service.options.clientID, redirectUrls: [`http://localhost:${port}/callback`] });
  await project.write({ 'app.js': readmeApplication(port), 'package.json': '{ "type": "module" }' });
  const { authUrl, baseUrl, clientID, clientSecret } = service.options;
  const variables = { AUTH_URL: authUrl, BASE_URL: baseUrl, CLIENT_ID: clientID, CLIENT_SECRET: clientSecret };
  const application = await startApplication(project.folder, 'app.js', variables, port);
  try {
    const url = `http://localhost:${port}/projects`;
    const { fetch: browse } = await service.logIn(fetch, { login: url });
    service.fail('api', { status: 403 });
    expect((await browse(url)).status).toBe(403);
    expect((await browse(url)).status).toBe(200);
  } finally {
    await application.stop();
    await service.close();
    await project.remove();
  }
});
