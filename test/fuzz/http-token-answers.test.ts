import { expect, onTestFinished, test } from 'vitest';
import { OAuthAppError } from '../../src/index.js';
import { Canaries } from '../security/canaries.js';
import { Browser } from '../support/browser.js';
import { answer, startFaultyServer } from '../support/faulty-server.js';
import { open } from '../support/one-world.js';
import { threats } from '../support/threats.js';
import { holds } from './fuzz.js';
import { RecordingDispatcher } from './recording-dispatcher.js';
import { SECRETS, TOKEN, tokenBody, tokenStatus } from './token-body.js';

test(
  'for any response of the token endpoint to a login and an API call, the application responds, and contacts no other host',
  threats(30),
  async () => {
    const service = await startFaultyServer();
    onTestFinished(() => service.close());
    const canaries = new Canaries();
    onTestFinished(() => canaries.stop());
    for (const secret of [...SECRETS, TOKEN]) canaries.hide('a quoted secret', secret);
    const { origin, port } = service;
    const enterprise = `http://{domain}.api.localhost:${port}`;
    const dispatcher = new RecordingDispatcher([origin]);
    const addresses = { authUrl: origin, baseUrl: origin, enterpriseBaseUrl: enterprise };
    const world = await open({ strategy: { ...addresses, dispatcher, userProfile: async () => ({ id: '1' }) } });
    await holds('logins with odd token answers, over HTTP', 0.002, [tokenStatus, tokenBody], async (status, body) => {
      const browser = new Browser();
      const login = await browser.visit(`${world.url}/login`);
      const state = new URL(login.headers.get('location') ?? '').searchParams.get('state');
      service.next(answer(status, { 'content-type': 'application/json' }, body));
      const page = await browser.visit(`${world.url}/callback?code=${SECRETS[1]}&state=${state}`);
      canaries.notePage(page);
      if (page.status !== 302 && page.status !== 502 && page.status !== 503) throw new Error(`status ${page.status}`);
      if (page.status === 302) canaries.notePage(await browser.visit(`${world.url}/whoami`));
    });
    for (const error of world.errors) expect(error).toBeInstanceOf(OAuthAppError);
    expect([...dispatcher.origins]).toEqual([origin]);
    canaries.noteWorld(world);
    expect(canaries.findings()).toEqual([]);
  },
);
