import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startEmulator } from 'passport-oauth-app/emulator';
import { afterAll, expect, test } from 'vitest';
import { threats } from '../support/threats.js';
import { service, startService, tokensFor } from './plain-client.js';

const folder = mkdtempSync(join(tmpdir(), 'emulator-openapi-'));
afterAll(() => rmSync(folder, { recursive: true }));

const json = (media: object) => ({ content: { 'application/json': media } });
const schemas = {
  Project: {
    type: 'object',
    properties: {
      id: { type: 'integer', minimum: 5 },
      name: { type: 'string', example: 'Site' },
      url: { type: 'string', format: 'uri' },
      state: { enum: ['open', 'closed'] },
      isPublic: { type: ['boolean', 'null'] },
      parent: { $ref: '#/components/schemas/Project' },
      labels: { type: 'array', minItems: 2, items: { type: 'string' } },
      size: { oneOf: [{ type: 'number' }, { type: 'string' }] },
    },
  },
  Named: { allOf: [{ type: 'object', properties: { id: { const: 7 } } }, { properties: { name: { default: 'x' } } }] },
};

function document(paths: object, more: object = {}): string {
  const file = join(folder, 'api.json');
  writeFileSync(file, `\ufeff${JSON.stringify({ openapi: '3.0.3', paths, components: { schemas }, ...more })}`);
  return file;
}

async function call(path: string, method = 'GET'): Promise<{ status: number; text: string; type: string | null }> {
  const { access_token } = await tokensFor();
  const headers = { authorization: `Bearer ${access_token}` };
  const response = await fetch(`${service.baseUrl}/api/v2${path}`, { method, headers });
  return { status: response.status, text: await response.text(), type: response.headers.get('content-type') };
}

test('examples answer, first that of the media type', async () => {
  const routes = document({
    '/a': { get: { responses: { 200: json({ example: { from: 'example' }, schema: { type: 'string' } }) } } },
    '/b': { post: { responses: { 201: json({ examples: { one: { value: [1] }, two: { value: [2] } } }) } } },
    '/c': { get: { responses: { 404: json({}), '2XX': { content: { 'text/csv': { example: 'a,b' } } } } } },
    '/d': { get: { responses: { default: json({ example: 'text' }) } }, delete: { responses: { 204: {} } } },
  });
  await startService({ routes });
  expect(await call('/a')).toEqual({ status: 200, text: '{"from":"example"}', type: 'application/json' });
  expect(await call('/b', 'POST')).toMatchObject({ status: 201, text: '[1]' });
  expect(await call('/c')).toEqual({ status: 200, text: 'a,b', type: 'text/csv' });
  expect(await call('/d')).toMatchObject({ status: 200, text: '"text"' });
  expect(await call('/d', 'DELETE')).toMatchObject({ status: 204, text: '' });
  expect(await call('/a', 'POST')).toMatchObject({ status: 405 });
  expect(await call('/projects')).toMatchObject({ status: 200 });
});

test('schemas answer, also those that contain themselves', async () => {
  const routes = document({
    '/project': { get: { responses: { 200: json({ schema: { $ref: '#/components/schemas/Project' } }) } } },
    '/named': { get: { responses: { 200: json({ schema: { $ref: '#/components/schemas/Named' } }) } } },
  });
  await startService({ routes });
  expect(JSON.parse((await call('/project')).text)).toMatchObject({
    id: 5,
    name: 'Site',
    url: 'https://example.com/',
    state: 'open',
    isPublic: true,
    parent: { id: 5, parent: { name: 'Site' } },
    labels: ['text', 'text'],
    size: 1,
  });
  expect(JSON.parse((await call('/named')).text)).toEqual({ id: 7, name: 'x' });
});

test('paths lose the path of the API and may have parameters in a part of a segment; concrete ones come first', async () => {
  const answer = (example: string) => ({ get: { responses: { 200: json({ example }) } } });
  const routes = document(
    {
      '/projects/{projectId}': answer('one'),
      '/projects/mine': answer('mine'),
      '/files/{name}.{type}': answer('file'),
      '/projects/{project-id}/files': answer('files'),
    },
    { servers: [{ url: 'https://api.example.com/api/v2/' }] },
  );
  await startService({ routes });
  expect((await call('/projects/mine')).text).toBe('"mine"');
  expect((await call('/projects/7')).text).toBe('"one"');
  expect((await call('/projects/7/files')).text).toBe('"files"');
  expect((await call('/files/a.b')).text).toBe('"file"');
  expect((await call('/files/a')).status).toBe(404);
});

test.each<[string, string, RegExp]>([
  ['broken.json', '{"openapi":', /is not valid JSON/],
  ['other.json', '{"swagger":"2.0","paths":{}}', /is not an OpenAPI 3 document/],
  ['list.json', '[]', /is not an OpenAPI 3 document/],
])('the file %s is refused', async (name, text, message) => {
  const file = join(folder, name);
  writeFileSync(file, text);
  await expect(startEmulator({ routes: file })).rejects.toThrow(message);
});

const textOf = (schema: object, type = 'application/json') => ({
  get: { responses: { 200: { content: { [type]: { schema } } } } },
});

test(
  'schemas that contain each other in many ways have an example of bounded size, made once',
  threats(82),
  async () => {
    const names = Array.from({ length: 30 }, (_none, index) => `S${index}`);
    const properties = Object.fromEntries(names.map((name) => [name, { $ref: `#/components/schemas/${name}` }]));
    const all = Object.fromEntries(
      names.map((name) => [name, { type: 'object', properties: { name: { const: name }, ...properties } }]),
    );
    const items = (depth: number): object =>
      depth === 0 ? { type: 'string' } : { type: 'array', minItems: 100, items: items(depth - 1) };
    const routes = document(
      { '/many': textOf({ $ref: '#/components/schemas/S0' }), '/long': textOf(items(7)) },
      { components: { schemas: all } },
    );
    await startService({ routes });
    for (const path of ['/many', '/long']) {
      const { status, text } = await call(path);
      expect(status).toBe(200);
      expect(text.length).toBeLessThan(1e6);
      expect(JSON.parse(text)).toBeTruthy();
    }
    expect((await call('/many')).text).toContain('"name":"S0"');
  },
);

test('a file whose schema of a reference contains itself answers with every property of it', async () => {
  const Node = {
    type: 'object',
    properties: { children: { type: 'array', items: { $ref: '#/components/schemas/Node' } }, id: { const: 1 } },
  };
  await startService({
    routes: document({ '/n': textOf({ $ref: '#/components/schemas/Node' }) }, { components: { schemas: { Node } } }),
  });
  const innermost = { children: [], id: 1 };
  expect(JSON.parse((await call('/n')).text)).toEqual({ children: [{ children: [innermost], id: 1 }], id: 1 });
});

test.each([
  [
    {
      url: 'https://{region}.example.com:{port}/{base}/v2/',
      variables: { base: { default: 'api' }, port: { default: 443 } },
    },
  ],
  [{ url: '{scheme}://example.com/api/v2' }],
  [{ url: '/{base}/v2', variables: { base: { default: 'api', enum: ['api', 'beta'] } } }],
  [{ url: 'https://example.com:port/api/v2?x#y' }],
])('a server with variables, %j, has the path of its defaults', async (server) => {
  await startService({ routes: document({ '/a': textOf({ const: 1 }) }, { servers: [server] }) });
  expect(await call('/a')).toMatchObject({ status: 200, text: '1' });
});

test.each([
  ['*/*', { type: 'string' }, 'text/plain; charset=utf-8', 'text'],
  ['text/*', { type: 'string' }, 'text/plain; charset=utf-8', 'text'],
  ['*/*', { const: { a: 1 } }, 'application/json', '{"a":1}'],
])('the media type %s of %j is sent as %s', async (range, schema, type, text) => {
  await startService({ routes: document({ '/a': textOf(schema, range) }) });
  expect(await call('/a')).toEqual({ status: 200, text, type });
});
