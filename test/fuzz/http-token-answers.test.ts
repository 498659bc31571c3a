import fc from 'fast-check';
import { afterEach, expect, test } from 'vitest';
import { OAuthAppError } from '../../src/index.js';
import { Canaries } from '../security/canaries.js';
import { Browser } from '../support/browser.js';
import { answer, type FaultyServer, startFaultyServer } from '../support/faulty-server.js';
import { startWorld, type World } from '../support/world.js';
import { holds } from './fuzz.js';
import { arePrototypesUntouched } from './hostile.js';
import { RecordingDispatcher } from './recording-dispatcher.js';
import { SECRETS, TOKEN, tokenBody, tokenStatus } from './token-body.js';

let world: World;
let service: FaultyServer;
let canaries: Canaries;
afterEach(async () => {
  canaries.stop();
  await world.close();
  await service.close();
});

test('for any response of the token endpoint to a login and an API call, the application responds, and contacts no other host', {
  meta: { threats: [30] },
}, async () => {
  service = await startFaultyServer();
  canaries = new Canaries();
  for (const secret of [...SECRETS, TOKEN]) canaries.hide('a quoted secret', secret);
  const { origin, port } = service;
  const enterprise = `http://{domain}.api.localhost:${port}`;
  const dispatcher = new RecordingDispatcher([origin]);
  world = await startWorld({
    strategy: {
      ...{ authUrl: origin, baseUrl: origin, enterpriseBaseUrl: enterprise, dispatcher },
      userProfile: async () => ({ id: '1' }),
    },
  });
  await holds(
    'logins with odd token answers, over HTTP',
    0.002,
    fc.asyncProperty(tokenStatus, tokenBody, async (status, body) => {
      const browser = new Browser();
      const login = await browser.visit(`${world.url}/login`);
      const state = new URL(login.headers.get('location') ?? '').searchParams.get('state');
      service.next(answer(status, { 'content-type': 'application/json' }, body));
      const page = await browser.visit(`${world.url}/callback?code=${SECRETS[1]}&state=${state}`);
      canaries.notePage(page);
      if (page.status !== 302 && page.status !== 502 && page.status !== 503) throw new Error(`status ${page.status}`);
      if (page.status === 302) canaries.notePage(await browser.visit(`${world.url}/whoami`));
    }),
  );
  for (const error of world.errors) expect(error).toBeInstanceOf(OAuthAppError);
  expect([...dispatcher.origins]).toEqual([origin]);
  canaries.noteWorld(world);
  expect(canaries.findings()).toEqual([]);
  expect(arePrototypesUntouched()).toBe(true);
});
