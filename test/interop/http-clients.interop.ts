import { readFileSync } from 'node:fs';
import { inspect } from 'node:util';
import { Client as Crowdin } from '@crowdin/crowdin-api-client';
import type { Request, Response } from 'express';
import { HTTPError } from 'ky';
import type { ApiClient } from 'passport-oauth-app';
import { crowdinHttpClient } from 'passport-oauth-app/providers';
import { describe, expect, test } from 'vitest';
import { sdk, withAxios, withJsforce, withSdk } from '../../docs/examples/sdk-clients.js';
import {
  client,
  createFixture,
  credentialOf,
  MemorySource,
  server,
  source,
  startApiForEachTest,
  tokenOf,
} from '../api/fixture.js';
import * as broken from '../support/broken-answers.js';
import * as faulty from '../support/faulty-server.js';
import { withGraphQL, withKy, withOpenApi, withTheSdk } from './another-client.js';

startApiForEachTest();

const sent = () =>
  server.requests.map(({ method, target, headers, body }) => ({
    line: `${method} ${target}`,
    authorization: headers.authorization?.replace('Bearer ', ''),
    body: body.toString(),
  }));

const page = { data: [{ data: { id: 7, name: 'Site' } }] };

test('docs/api-client.md shows another-client.ts', () => {
  const read = (path: string) => readFileSync(new URL(path, import.meta.url), 'utf8');
  const shown = `\`\`\`typescript\n// another-client.ts\n${read('another-client.ts')}\`\`\``;
  expect(read('../../docs/api-client.md')).toContain(shown);
});

/** An answer in JSON, as openapi-typescript writes it. */
interface Json<Body> {
  headers: { [name: string]: unknown };
  content: { 'application/json': Body };
}
interface Project {
  data: { id: number; name: string };
}
type Refusal = Json<{ error: { message: string; code: number } }>;

/** What openapi-typescript makes of an API with three operations, without those that it says there are none of. */
interface Paths {
  '/projects': {
    get: { parameters: { query?: { limit?: number } }; responses: { 200: Json<{ data: Project[] }> } };
    post: {
      requestBody: { content: { 'application/json': { name: string } } };
      responses: { 201: Json<Project>; 400: Refusal };
    };
  };
  '/projects/{projectId}': {
    get: { parameters: { path: { projectId: number } }; responses: { 200: Json<Project>; 404: Refusal } };
  };
}

describe('openapi-fetch with types as openapi-typescript makes them', () => {
  test('gets, posts again after a 401, and returns a refusal as its error', async () => {
    const api = withOpenApi<Paths>(client);
    server.next(faulty.json(page));
    const { data } = await api.GET('/projects', { params: { query: { limit: 5 } } });
    const name: string | undefined = data?.data[0]?.data.name;
    expect(name).toBe('Site');

    server.next(faulty.json({}, 401));
    server.next(faulty.json({ data: { id: 8, name: 'New' } }, 201));
    expect((await api.POST('/projects', { body: { name: 'New' } })).data).toEqual({ data: { id: 8, name: 'New' } });

    server.next(faulty.json({ error: { message: 'Project Not Found', code: 404 } }, 404));
    const { error, response } = await api.GET('/projects/{projectId}', { params: { path: { projectId: 9 } } });
    expect([error?.error.message, response.status]).toEqual(['Project Not Found', 404]);
    expect(sent()).toEqual([
      { line: 'GET /api/v2/projects?limit=5', authorization: tokenOf('first'), body: '' },
      { line: 'POST /api/v2/projects', authorization: tokenOf('first'), body: '{"name":"New"}' },
      { line: 'POST /api/v2/projects', authorization: tokenOf('refresh-1'), body: '{"name":"New"}' },
      { line: 'GET /api/v2/projects/9', authorization: tokenOf('refresh-1'), body: '' },
    ]);
  });
});

describe('ky', () => {
  test('gets and posts, and throws its own error for a status', async () => {
    const api = withKy(client);
    server.next(faulty.json(page));
    expect(await api.get('projects', { searchParams: { limit: 1 } }).json()).toEqual(page);
    server.next(faulty.json({}, 401));
    server.next(faulty.json({ data: { id: 8 } }, 201));
    expect(await api.post('projects', { json: { name: 'New' } }).json()).toEqual({ data: { id: 8 } });
    server.next(faulty.json({}, 404));
    await expect(api.get('projects/9')).rejects.toBeInstanceOf(HTTPError);
    expect(sent().map(({ line, authorization }) => [line, authorization])).toEqual([
      ['GET /api/v2/projects?limit=1', tokenOf('first')],
      ['POST /api/v2/projects', tokenOf('first')],
      ['POST /api/v2/projects', tokenOf('refresh-1')],
      ['GET /api/v2/projects/9', tokenOf('refresh-1')],
    ]);
  });
});

describe('axios', () => {
  test('posts again after a 401, and rejects with what ended the grant', async () => {
    const api = withAxios(client);
    server.next(faulty.json({}, 401));
    server.next(faulty.json({ data: { id: 8 } }, 201));
    expect((await api.post('/projects', { name: 'New' })).data).toEqual({ data: { id: 8 } });
    expect(sent().map(({ authorization, body }) => [authorization, body])).toEqual([
      [tokenOf('first'), '{"name":"New"}'],
      [tokenOf('refresh-1'), '{"name":"New"}'],
    ]);
    const ended = new Error('ended');
    const accessToken = async (options?: object) => (options ? Promise.reject(ended) : 'a token');
    server.next(faulty.json({}, 401));
    const refusing = { baseUrl: client.baseUrl, accessToken } as unknown as ApiClient;
    await expect(withAxios(refusing).get('/projects')).rejects.toBe(ended);
  });

  test('is one object in all functions below the handler of a request, and none outside', async () => {
    const seen: unknown[] = [];
    await new Promise<void>((resolve) => {
      const next = () => void Promise.resolve().then(() => resolve(void seen.push(sdk(), sdk())));
      withSdk({ apiClient: client } as Request, {} as Response, next);
    });
    expect(seen[0]).toBe(seen[1]);
    expect(() => sdk()).toThrow('outside a request');
  });
});

describe('jsforce', () => {
  test('goes on with the token that its refreshFn got', async () => {
    const connection = await withJsforce(client);
    server.next(faulty.json({}, 401));
    server.next(faulty.json({ sobjects: [] }));
    await connection.request('/services/data/v64.0/sobjects');
    expect(sent().map(({ authorization }) => authorization)).toEqual([tokenOf('first'), tokenOf('refresh-1')]);
  });
});

describe('graphql-request', () => {
  test('queries the API outside of its versioned path', async () => {
    server.next(faulty.json({ data: { viewer: { name: 'Ada' } } }));
    expect(await withGraphQL(client)).toEqual({ viewer: { name: 'Ada' } });
    const body = expect.stringContaining('query { viewer { name } }');
    expect(sent()).toEqual([{ line: 'POST /api/graphql', authorization: tokenOf('first'), body }]);
  });
});

describe('the official SDK over crowdinHttpClient', () => {
  const ok = faulty.json({ ...page, pagination: { offset: 0, limit: 25 } });
  const sdkOf = (api = client) => new Crowdin({ token: 'unused' }, { httpClient: crowdinHttpClient(api) });

  test('counts projects as docs/api-client.md shows', async () => {
    server.next(ok);
    expect(await withTheSdk(client)).toBe(1);
  });

  test('is one instance across a refusal and a rotation, with a token that is always the current one', async () => {
    const sdk = sdkOf();
    server.next(faulty.json({}, 401));
    server.next(ok, 2);
    const names = async () =>
      (await sdk.projectsGroupsApi.listProjects()).data.map(({ data }: { data: { name: string } }) => data.name);
    expect(await names()).toEqual(['Site']);
    source.current = credentialOf('rotated');
    expect(await names()).toEqual(['Site']);
    server.next(faulty.json({ data: { id: 3, fileName: 'a.txt' } }, 201));
    await sdk.uploadStorageApi.addStorage('a.txt', 'the text');
    server.next(faulty.raw(faulty.head(204, {})));
    await sdk.uploadStorageApi.deleteStorage(3);
    expect(sent().map(({ line, authorization, body }) => [line, authorization, body])).toEqual([
      ['GET /api/v2/projects', tokenOf('first'), ''],
      ['GET /api/v2/projects', tokenOf('refresh-1'), ''],
      ['GET /api/v2/projects', tokenOf('rotated'), ''],
      ['POST /api/v2/storages', tokenOf('rotated'), 'the text'],
      ['DELETE /api/v2/storages/3', tokenOf('rotated'), ''],
    ]);
    expect(server.requests.some(({ headers }) => headers.authorization?.includes('unused'))).toBe(false);
  });

  test('goes to the organization of the grant, and keeps within its concurrency', async () => {
    const source = new MemorySource(credentialOf('ben', 'acme'));
    const enterpriseBaseUrl = `http://{domain}.api.localhost:${server.port}`;
    const { client } = createFixture(server.origin, { source, enterpriseBaseUrl, concurrency: 2 });
    const sdk = sdkOf(client);
    let running = 0;
    let most = 0;
    server.always((socket, received) => {
      most = Math.max(most, ++running);
      setImmediate(() => {
        running--;
        ok(socket, received);
      });
    });
    await Promise.all(Array.from({ length: 12 }, () => sdk.projectsGroupsApi.listProjects()));
    expect(most).toBeLessThanOrEqual(2);
    expect(new Set(server.requests.map(({ headers }) => headers.host))).toEqual(
      new Set([`acme.api.localhost:${server.port}`]),
    );
  });

  test.each<[string, faulty.Behaviour, number, RegExp]>([
    ['HTML of a proxy', broken.html(403), 403, /GET \/api\/v2\/projects\/9: status 403$/],
    ['JSON in another shape', faulty.json({ message: 'Gateway' }, 403), 403, /: status 403$/],
    ['invalid JSON, with a success', broken.badJson('<Gateway>'), 502, /the body is not valid JSON$/],
  ])('keeps the status of %s, and quotes nothing of it', async (_what, behaviour, code, message) => {
    const sdk = sdkOf();
    server.next(behaviour);
    const error = await sdk.projectsGroupsApi.getProject(9).catch((reason: unknown) => reason);
    expect(error).toMatchObject({ code, message: expect.stringMatching(message) });
    expect(inspect(error)).not.toContain('Gateway');
  });

  test('gets the refusals of the API as its own errors, and nothing else reaches another host', async () => {
    const sdk = sdkOf();
    const missing = { message: 'Project Not Found', code: 404 };
    server.next(faulty.json({ error: missing }, 404));
    await expect(sdk.projectsGroupsApi.getProject(9)).rejects.toMatchObject(missing);
    const refused = { errors: [{ error: { key: 'name', errors: [{ code: 'isEmpty', message: 'is required' }] } }] };
    server.next(faulty.json(refused, 400));
    await expect(sdk.projectsGroupsApi.addProject({ name: '', sourceLanguageId: 'en' })).rejects.toMatchObject({
      message: 'is required',
      code: 400,
      validationCodes: [{ key: 'name', codes: ['isEmpty'] }],
    });
    const count = server.requests.length;
    const leaving = sdk.graphql({ query: '{ a }' }, { url: 'https://evil.example/graphql' });
    await expect(leaving).rejects.toThrow(/expected an address/);
    expect(server.requests).toHaveLength(count);
  });
});
