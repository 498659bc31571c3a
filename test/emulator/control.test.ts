import { describe, expect, test } from 'vitest';
import { threats } from '../support/threats.js';
import {
  authorizeUrl,
  callback,
  exchange,
  post,
  projects,
  rawGet,
  refresh,
  service,
  startService,
  startServiceForEachTest,
  tokensFor,
} from './plain-client.js';

startServiceForEachTest();

interface Answer {
  readonly status: number;
  readonly body: unknown;
}

async function control(method: string, path: string, content?: unknown, headers = {}): Promise<Answer> {
  const response = await fetch(`${service.authUrl}/_emulator/${path}`, {
    method,
    headers: { 'content-type': 'application/json', ...headers },
    ...(content === undefined ? {} : { body: JSON.stringify(content) }),
  });
  return { status: response.status, body: await response.json() };
}

describe('requests', () => {
  test('are listed with their outcome, and control requests are not among them', async () => {
    await tokensFor('1');
    await control('GET', 'requests');
    const body = [
      { method: 'GET', path: '/oauth/authorize', query: { state: 'some-state' }, outcome: 200 },
      { method: 'POST', path: '/oauth/authorize', outcome: 302 },
      { method: 'POST', path: '/oauth/token', body: { grant_type: 'authorization_code' }, outcome: 200 },
    ];
    expect(await control('GET', 'requests')).toMatchObject({ status: 200, body });
  });

  test(
    'of deeply nested JSON are texts, and neither the control nor the page ends with them',
    threats(82),
    async () => {
      const deep = (levels: number) => `${'{"a":['.repeat(levels)}"]}"${']}'.repeat(levels)}`;
      for (const body of [deep(50), deep(100_000), `{"a":"${'['.repeat(100_000)}"}`]) {
        expect((await post('/api/v2/projects', body, 'application/json')).status).toBe(401);
      }
      const bodies = [JSON.parse(deep(50)), deep(100_000), { a: '['.repeat(100_000) }].map((body) => ({ body }));
      expect(await control('GET', 'requests')).toMatchObject({ status: 200, body: bodies });
      expect((await rawGet('/', {})).status).toBe(200);
      for (const path of ['/_emulator/users', '/_emulator/faults', '/_emulator/advance', '/oauth/token']) {
        expect((await post(path, deep(100_000), 'application/json')).status).toBe(400);
      }
    },
  );

  test('keep their parsed bodies for as long as they are kept', async () => {
    await startService({ keepBodyBytes: 20 });
    for (const body of ['{"first":1}', '{"second":2}']) await post('/api/v2/projects', body, 'application/json');
    expect(service.requests).toMatchObject([{ body: undefined }, { body: { second: 2 } }]);
    expect({ ...service.requests[1] }.body).toEqual({ second: 2 });
  });

  test('have bytes in base64', async () => {
    const headers = { 'content-type': 'application/octet-stream' };
    await fetch(`${service.baseUrl}/api/v2/storages`, { method: 'POST', headers, body: new Uint8Array([0, 255]) });
    const { body } = await control('GET', 'requests');
    expect(body).toMatchObject([{ body: 'AP8=', bodyEncoding: 'base64', outcome: 401 }]);
  });

  test('can be removed', async () => {
    await projects('x');
    expect((await control('DELETE', 'requests')).status).toBe(200);
    expect((await control('GET', 'requests')).body).toEqual([]);
    expect(service.requests).toEqual([]);
  });
});

describe('faults', () => {
  test('are queued, listed, applied and removed', async () => {
    const added = await control('POST', 'faults', { endpoint: 'token', status: 503, times: 2 });
    expect(added).toEqual({ status: 201, body: { id: 1, endpoint: 'token', status: 503, times: 2 } });
    await control('POST', 'faults', { endpoint: 'api', times: null });
    expect((await exchange('any')).status).toBe(503);
    expect((await control('GET', 'faults')).body).toEqual([
      { id: 1, endpoint: 'token', status: 503, times: 1 },
      { id: 2, endpoint: 'api', times: null },
    ]);
    expect((await control('DELETE', 'faults/1')).body).toEqual({ removed: 1 });
    expect((await control('DELETE', 'faults/1')).body).toEqual({ removed: 0 });
    expect((await exchange('any')).status).toBe(400);
    for (let n = 0; n < 3; n += 1) expect((await projects('any')).status).toBe(500);
    expect((await control('DELETE', 'faults')).body).toEqual({ removed: 1 });
    expect((await projects('any')).status).toBe(401);
  });

  test('share one queue with the members of the object', async () => {
    const cancel = service.fail('token', { hang: true });
    expect((await control('GET', 'faults')).body).toMatchObject([{ endpoint: 'token', hang: true }]);
    cancel();
    expect((await control('GET', 'faults')).body).toEqual([]);
  });

  test('JSON is read although its content type is that of a form, as curl and urllib send it', async () => {
    const headers = { 'content-type': 'application/x-www-form-urlencoded' };
    expect((await control('POST', 'faults', { endpoint: 'token', status: 503 }, headers)).status).toBe(201);
    expect((await exchange('any')).status).toBe(503);
  });

  test.each([
    [{ endpoint: 'tokens' }, /endpoint must be one of/],
    [{ endpoint: 'token', stauts: 5 }, /unknown key "stauts"/],
    [{ endpoint: 'token', status: '503' }, /status must be a whole number/],
    ['text', /must be a JSON object/],
    [undefined, /must be a JSON object/],
  ])('%j is refused', async (fault, message) => {
    const body = { error: { code: 'ERR_EMULATOR_OPTION', message: expect.stringMatching(message) } };
    expect(await control('POST', 'faults', fault)).toMatchObject({ status: 400, body });
  });
});

describe('users, revocation, expiry and time', () => {
  test('a user is added, and replaced', async () => {
    const mara = { id: 'm', name: 'Mara', domain: 'globex' };
    expect(await control('POST', 'users', mara)).toMatchObject({ status: 201, body: mara });
    await control('POST', 'users', { ...mara, name: 'Mara K.' });
    expect(service.users.map(({ name }) => name)).toEqual(['Ada Ferrant', 'Ben Okafor', 'Mara K.']);
    expect((await control('GET', 'users')).body).toHaveLength(3);
    expect((await control('POST', 'users', { name: 'Nobody' })).status).toBe(400);
  });

  test('an application is registered, or gets further redirect URLs', async () => {
    const redirectUrls = ['http://localhost:9/callback'];
    const { clientID } = service.options;
    const body = { clientID, redirectUrls: [callback, ...redirectUrls] };
    expect(await control('POST', 'applications', { clientID, redirectUrls })).toMatchObject({ status: 201, body });
  });

  test('revoke ends the grants of a user', async () => {
    const { access_token } = await tokensFor('1');
    expect((await control('POST', 'revoke', { userId: '1' })).body).toEqual({ grants: 1 });
    expect((await projects(access_token)).status).toBe(401);
    expect((await control('POST', 'revoke', { userId: 'nobody' })).status).toBe(400);
    expect((await control('POST', 'revoke', { user: '1' })).status).toBe(400);
  });

  test('expire-access-tokens ends access tokens, and refresh tokens still work', async () => {
    const { access_token, refresh_token } = await tokensFor('1');
    expect((await control('POST', 'expire-access-tokens')).status).toBe(200);
    expect((await projects(access_token)).status).toBe(401);
    expect((await refresh(refresh_token)).status).toBe(200);
  });

  test('advance moves the time', async () => {
    await startService({ clock: () => 1_700_000_000_000 });
    const { access_token } = await tokensFor('1');
    expect((await control('POST', 'advance', { seconds: 7200 })).body).toEqual({ now: '2023-11-15T00:13:20.000Z' });
    expect((await projects(access_token)).status).toBe(401);
    const body = { error: { message: expect.stringContaining('between 1970 and 9999') } };
    for (const seconds of ['soon', 1e300, -1e300, 1e12, null])
      expect(await control('POST', 'advance', { seconds })).toMatchObject({ status: 400, body });
    expect(() => service.advance(Number.NaN)).toThrow(/between 1970 and 9999/);
    expect((await control('POST', 'advance', { seconds: 0 })).body).toEqual({ now: '2023-11-15T00:13:20.000Z' });
  });

  test('reset returns to the state after the start, and applications stay registered', async () => {
    const redirect_uri = 'http://localhost:9/callback';
    service.register({ clientID: service.options.clientID, redirectUrls: [redirect_uri] });
    const { access_token, refresh_token } = await tokensFor('1');
    service.addUser({ id: '1', name: 'Other' });
    service.addUser({ id: '3', name: 'Cleo' });
    service.fail('token', { times: 5 });
    service.advance(1_000_000);
    service.install();
    expect((await control('POST', 'reset')).status).toBe(200);
    expect(() => service.uninstall()).toThrow(/must be that of an application installed/);
    expect(service.requests).toEqual([]);
    expect(service.users.map(({ name }) => name)).toEqual(['Ada Ferrant', 'Ben Okafor']);
    expect((await refresh(refresh_token)).status).toBe(400);
    expect((await projects(access_token)).status).toBe(401);
    expect((await tokensFor('1')).expires_in).toBe(7200);
    expect(await service.approve(authorizeUrl({ redirect_uri }))).toContain(redirect_uri);
  });

  test('reset brings back the limit of concurrency that the service was started with', async () => {
    await startService({ concurrency: 2 });
    for (const limit of [1, undefined]) {
      service.limit(limit);
      service.reset();
      const { access_token } = await tokensFor();
      service.fail('api', { delay: 100, times: 3 });
      const answers = await Promise.all([1, 2, 3].map(() => projects(access_token)));
      expect(answers.map(({ status }) => status).toSorted()).toEqual([200, 200, 429]);
    }
  });
});

describe('the OpenAPI document', () => {
  test('describes every control, and each is there', async () => {
    const { body } = await control('GET', 'openapi.json');
    const { openapi, paths } = body as { openapi: string; paths: Record<string, Record<string, unknown>> };
    expect(openapi).toBe('3.1.0');
    const described = Object.entries(paths).flatMap(([path, item]) => Object.keys(item).map((m) => `${m} ${path}`));
    expect(described).toEqual([
      ...['get /_emulator/requests', 'delete /_emulator/requests', 'get /_emulator/faults', 'post /_emulator/faults'],
      ...['delete /_emulator/faults', 'delete /_emulator/faults/{id}', 'get /_emulator/users', 'post /_emulator/users'],
      ...[
        'post /_emulator/applications',
        'get /_emulator/tenants',
        'post /_emulator/installations',
        'delete /_emulator/installations',
      ],
      ...['post /_emulator/revoke', 'post /_emulator/expire-access-tokens'],
      ...['post /_emulator/limit', 'post /_emulator/advance', 'post /_emulator/reset'],
    ]);
    for (const operation of described) {
      const [method = '', path = ''] = operation.split(' ');
      const { status } = await control(method.toUpperCase(), path.slice('/_emulator/'.length).replace('{id}', '1'));
      expect([200, 400]).toContain(status);
    }
  });

  test('an unknown control is 404, another method 405 with Allow', async () => {
    expect((await control('GET', 'nothing')).status).toBe(404);
    const response = await fetch(`${service.authUrl}/_emulator/reset`);
    expect([response.status, response.headers.get('allow')]).toEqual([405, 'POST']);
  });
});

describe('pages of other origins', threats(68), () => {
  const foreign: Record<string, string>[] = [
    { origin: 'http://evil.example' },
    { origin: 'null' },
    { origin: 'http://localhost:3000' },
    { 'sec-fetch-site': 'cross-site' },
    { 'sec-fetch-site': 'same-site' },
    { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'iframe' },
  ];

  test.each(foreign)('with %j nothing is controlled and nothing is shown', async (headers) => {
    for (const allowRemote of [false, true]) {
      await startService({ allowRemote });
      expect((await control('POST', 'faults', { endpoint: 'token' }, headers)).status).toBe(403);
      expect((await control('GET', 'requests', undefined, headers)).status).toBe(403);
      expect((await rawGet('/', headers)).status).toBe(403);
      expect((await exchange('any')).status).toBe(400);
      await service.close();
    }
  });

  test('the emulator’s own page may control it, and a link may open the page', async () => {
    const own = { origin: service.authUrl, 'sec-fetch-site': 'same-origin' };
    expect((await control('POST', 'faults', { endpoint: 'token' }, own)).status).toBe(201);
    const link = { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'document' };
    expect((await rawGet('/', link)).status).toBe(200);
    expect((await rawGet('/_emulator/requests', link)).status).toBe(403);
  });

  test('no answer allows another origin to read it', async () => {
    const { headers } = await fetch(`${service.authUrl}/_emulator/requests`);
    expect(headers.get('access-control-allow-origin')).toBeNull();
    expect(headers.get('cache-control')).toBe('no-store');
  });
});
