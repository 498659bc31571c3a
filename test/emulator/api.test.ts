import type { EmulatorOptions } from 'passport-oauth-app/emulator';
import { describe, expect, test } from 'vitest';
import { hold } from '../support/hold.js';
import { body, onHost, projects, service, startService, tokensFor } from './plain-client.js';

interface Page {
  readonly data: readonly { readonly data: { readonly id: number } }[];
  readonly pagination: unknown;
}

async function start(options: EmulatorOptions = {}, user = '1'): Promise<string> {
  await startService(options);
  return (await tokensFor(user)).access_token;
}

function api(token: string, path: string, init: RequestInit = {}): Promise<Response> {
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
  return fetch(`${service.baseUrl}/api/v2${path}`, { headers, ...init });
}

describe('/projects and /user', () => {
  const users = [{ id: '1', name: 'Ada', projects: Array.from({ length: 60 }, (_, id) => ({ id })) }];

  test('projects come in pages of limit and offset', async () => {
    const token = await start({ users });
    const ids = async (query: string) => {
      const page = await body<Page>(await projects(token, query));
      return { ids: page.data.map(({ data }) => data.id), pagination: page.pagination };
    };
    expect((await ids('')).pagination).toEqual({ offset: 0, limit: 25 });
    expect((await ids('')).ids).toHaveLength(25);
    expect(await ids('?limit=3&offset=58')).toEqual({ ids: [58, 59], pagination: { offset: 58, limit: 3 } });
    expect((await ids('?offset=60')).ids).toEqual([]);
    expect((await ids('?limit=500')).ids).toHaveLength(60);
  });

  test.each(['limit=0', 'limit=501', 'limit=x', 'offset=-1', 'limit=1.5', 'limit='])('%s is refused', async (query) => {
    expect((await projects(await start(), `?${query}`)).status).toBe(400);
  });

  test('/user tells who it is', async () => {
    const token = await start({}, '2');
    expect(await (await api(token, '/user')).json()).toEqual({
      data: { id: '2', fullName: 'Ben Okafor', organization: 'acme' },
    });
  });
});

describe('what is not there', () => {
  test('an unknown path is 404, another method 405 with Allow, both in JSON', async () => {
    const token = await start();
    const unknown = await api(token, '/nothing');
    expect([unknown.status, await unknown.json()]).toEqual([
      404,
      { error: { message: 'Nothing exists at this path.', code: 404 } },
    ]);
    const method = await api(token, '/projects', { method: 'DELETE' });
    expect([method.status, method.headers.get('allow')]).toEqual([405, 'GET']);
    expect(await method.json()).toEqual({ error: { message: 'Only GET is supported here.', code: 405 } });
  });

  test('HEAD is answered like GET, without the body', async () => {
    const token = await start();
    const head = await api(token, '/projects', { method: 'HEAD' });
    expect(head.status).toBe(200);
    expect(Number(head.headers.get('content-length'))).toBeGreaterThan(100);
    expect(await head.text()).toBe('');
  });

  test('the hosts of organizations have the API only', async () => {
    const token = await start({}, '2');
    expect((await onHost('acme.api.localhost', '/oauth/token', token)).status).toBe(404);
    expect((await onHost('ACME.API.localhost', '/api/v2/user', token)).status).toBe(200);
    expect((await onHost('a.acme.api.localhost', '/api/v2/user', token)).status).toBe(403);
  });
});

describe('routes that a test adds', () => {
  test('a handler gets the request, and what it returns is the response', async () => {
    const token = await start({
      routes: [
        {
          method: 'POST',
          path: '/projects/:projectId/files/:name',
          handler: ({ user: { name }, ...request }) => {
            const { scopes, params, query, body, organization } = request;
            return { user: name, scopes, params, query, body, organization };
          },
        },
      ],
    });
    const response = await api(token, '/projects/7/files/a%20b?x=1&x=2', { method: 'POST', body: '{"c":3}' });
    expect(response.status).toBe(200);
    expect(await response.json()).toEqual({
      user: 'Ada Ferrant',
      scopes: ['project', 'tm'],
      params: { projectId: '7', name: 'a b' },
      query: { x: ['1', '2'] },
      body: { c: 3 },
    });
  });

  test.each<[unknown, number, string, string | null]>([
    [undefined, 204, '', 'application/json'],
    [null, 200, 'null', 'application/json'],
    [{ status: 'draft' }, 200, '{"status":"draft"}', 'application/json'],
    [{ status: 201, body: { id: 1 } }, 201, '{"id":1}', 'application/json'],
    [{ status: 404, body: '<h1>Gone</h1>' }, 404, '<h1>Gone</h1>', 'text/html; charset=utf-8'],
    [{ status: 302, headers: { Location: '/x' }, body: '' }, 302, '', 'text/plain; charset=utf-8'],
    [{ status: 7, title: 'Seven' }, 200, '{"status":7,"title":"Seven"}', 'application/json'],
  ])('%j becomes the answer that it stands for', async (result, status, text, type) => {
    const token = await start({ routes: [{ method: 'GET', path: '/made', handler: async () => result }] });
    const response = await api(token, '/made', { redirect: 'manual' });
    expect([response.status, await response.text()]).toEqual([status, text]);
    expect(response.headers.get('content-type')).toBe(type);
  });

  test('an error that a handler throws is a 500, and the service continues', async () => {
    const handler = () => {
      throw new Error('out of paper');
    };
    const token = await start({ routes: [{ method: 'GET', path: '/made', handler }] });
    const response = await api(token, '/made');
    expect([response.status, await response.json()]).toEqual([500, { error: { message: 'out of paper', code: 500 } }]);
    expect((await projects(token)).status).toBe(200);
  });

  const headers = { 'a b': 'c' };
  test.each([{ status: 99 }, { status: 200, headers }, { status: 200, headers: { a: 'b\nc' } }, { body: 1n }])(
    'the impossible answer %# is a 500, and the service goes on',
    async (result) => {
      const token = await start({ routes: [{ method: 'GET', path: '/made', handler: () => result }] });
      expect((await api(token, '/made')).status).toBe(500);
      expect((await projects(token)).status).toBe(200);
    },
  );

  test('a route of one’s own comes before the one that is always there', async () => {
    const token = await start({ routes: [{ method: 'GET', path: '/projects', handler: () => ({ data: [] }) }] });
    expect(await (await projects(token)).json()).toEqual({ data: [] });
  });

  test('they want an access token like all others', async () => {
    await start({ routes: [{ method: 'GET', path: '/made', handler: () => 1 }] });
    expect((await api('made-up', '/made')).status).toBe(401);
  });
});

describe('simultaneous requests', () => {
  test('one more than concurrency allows gets 429, and each account has its own count', async () => {
    let release = () => {};
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    const routes = [{ method: 'GET', path: '/slow', handler: () => held }];
    const ada = await start({ concurrency: 2, routes });
    const ben = (await tokensFor('2')).access_token;
    const running = [api(ada, '/slow'), api(ada, '/slow')];
    await expect.poll(() => service.requests.filter(({ path }) => path.endsWith('/slow')).length).toBe(2);
    const surplus = await projects(ada);
    expect([surplus.status, surplus.headers.get('retry-after')]).toEqual([429, '1']);
    expect((await projects(ben)).status).toBe(200);
    release();
    expect((await Promise.all(running)).map(({ status }) => status)).toEqual([204, 204]);
    expect((await projects(ada)).status).toBe(200);
  });

  test('the limit changes by a control, and goes', async () => {
    const token = await start();
    const limit = (concurrency: unknown) =>
      fetch(`${service.authUrl}/_emulator/limit`, { method: 'POST', body: JSON.stringify({ concurrency }) });
    expect((await limit(1)).status).toBe(200);
    const release = hold(service, 'api');
    const first = projects(token);
    await expect.poll(() => service.requests.filter(({ path }) => path.startsWith('/api')).length).toBe(1);
    expect((await projects(token)).status).toBe(429);
    expect((await limit(0)).status).toBe(400);
    service.limit(2);
    expect((await projects(token)).status).toBe(200);
    service.limit(1);
    expect((await limit(null)).status).toBe(200);
    expect((await projects(token)).status).toBe(200);
    release();
    expect((await first).status).toBe(200);
  });
});
