import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, test } from 'vitest';
import { HttpClient } from '../../src/service/http-client.js';

test('a request is answered', async () => {
  const server = createServer((req, res) => res.end(JSON.stringify({ url: req.url, host: req.headers.host })));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const http = new HttpClient();
  const { port } = server.address() as AddressInfo;
  const request = { origin: `http://acme.api.localhost:${port}`, path: '/x', method: 'GET', headers: [], timeoutMs: 1000 };
  const response = await http.send(request);
  expect(response.body.toString()).toBe(`{"url":"/x","host":"acme.api.localhost:${port}"}`);
  await expect(http.send({ ...request, origin: 'http://127.0.0.1:1' })).rejects.toMatchObject({ kind: 'connect', left: false });
  await http.close();
  await http.close();
  await expect(http.send(request)).rejects.toMatchObject({ kind: 'closed' });
  server.close();
});
