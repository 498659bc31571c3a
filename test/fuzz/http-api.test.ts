import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import fc from 'fast-check';
import { expect, onTestFinished, test } from 'vitest';
import { HttpClient } from '../../src/http/http-client.js';
import { createFixture } from '../api/fixture.js';
import { threats } from '../support/threats.js';
import { holds } from './fuzz.js';
import { hostileAfter, hostileText } from './hostile.js';
import { RecordingDispatcher } from './recording-dispatcher.js';

test(
  'what Node’s HTTP server gets of an API call is below /api/v2, from the configured host, with no header that the caller forged',
  threats(25),
  async () => {
    const targets: string[] = [];
    const server = createServer({ keepAliveTimeout: 0, maxHeaderSize: 1024 * 1024 }, (req, res) => {
      targets.push(req.url ?? '');
      res.setHeader('content-type', 'application/json');
      res.end('{}');
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const dispatcher = new RecordingDispatcher([origin]);
    onTestFinished(async () => {
      await dispatcher.close();
      server.closeAllConnections();
      server.close();
    });
    const { client } = createFixture(origin, { http: new HttpClient({ dispatcher }) });
    const path = fc.oneof(
      hostileAfter('/', 'projects/', '/a%2f'),
      fc.webPath().map((text) => text.slice(0, 200)),
    );
    const query = fc.dictionary(hostileText, hostileText, { maxKeys: 3 });
    const name = fc.oneof(fc.constantFrom('authorization', 'host', 'x-a', 'Host'), hostileText);
    const headers = fc.dictionary(name, hostileText, { maxKeys: 2 });
    let sent = 0;
    await holds('API calls, over HTTP', 0.007, [path, query, headers], async (to, pairs, fields) => {
      targets.length = 0;
      try {
        await client.request('GET', to, { query: pairs, headers: fields });
      } catch (error) {
        if (!(error instanceof TypeError) || targets.length > 0) throw error;
        return;
      }
      sent += 1;
      const [target = ''] = targets;
      const url = new URL(target, origin);
      if (url.origin !== origin || !url.pathname.startsWith('/api/v2/') || targets.length !== 1)
        throw new Error('elsewhere');
    });
    expect(sent).toBeGreaterThan(0);
    expect([...dispatcher.origins]).toEqual([origin]);
  },
);
