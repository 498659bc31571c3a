import { onTestFinished } from 'vitest';
import { type Behaviour, startFaultyServer } from './faulty-server.js';
import { open, visit } from './one-world.js';
import type { WorldOptions } from './world.js';

/**
 * Opens a world with a token endpoint that does this, and begins a login. Returns that server, which closes itself, and the
 * callback of the login, with this code.
 */
export async function openWithEndpoint(behaviour: Behaviour, options?: WorldOptions, code = 'c') {
  const server = await startFaultyServer();
  onTestFinished(() => server.close());
  server.always(behaviour);
  await open({ ...options, strategy: { authUrl: server.origin, ...options?.strategy } });
  const login = await visit('/login');
  const state = new URL(login.headers.get('location') ?? '').searchParams.get('state');
  return { server, callback: `/callback?code=${code}&state=${state}` };
}
