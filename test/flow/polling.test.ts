import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { memoryTokenStore, Strategy } from 'passport-oauth-app';
import { expect, onTestFinished, test } from 'vitest';
import { TestClock } from '../support/test-clock.js';
import { threats } from '../support/threats.js';

const USERS = 60;
const POLL_S = 0.5;
const POLLS = 240;
const LIFETIME_S = 60;

test(
  '60 users poll every 500 ms, one with a dead token that is refused by 401 and a text: the others notice nothing',
  threats(109, 110),
  async () => {
    const refreshes = new Map<string, number>();
    const answer = (res: ServerResponse, status: number, body: string) => res.writeHead(status).end(body);
    const handle = async (req: IncomingMessage, res: ServerResponse) => {
      if (req.method === 'GET') return answer(res, 200, '[]');
      const [, user = ''] = /r-(\d+)/.exec(await text(req)) ?? [];
      refreshes.set(user, (refreshes.get(user) ?? 0) + 1);
      if (user === '0') return answer(res, 401, 'Unauthorized');
      const tokens = { access_token: `a-${user}-${refreshes.get(user)}`, token_type: 'bearer', expires_in: LIFETIME_S };
      return answer(res, 200, JSON.stringify({ ...tokens, refresh_token: `r-${user}` }));
    };
    const service = createServer((req, res) => void handle(req, res)).listen(0, '127.0.0.1');
    await once(service, 'listening');
    const origin = `http://127.0.0.1:${(service.address() as AddressInfo).port}`;
    const clock = new TestClock();
    const strategy = new Strategy({
      ...{
        authUrl: origin,
        baseUrl: origin,
        clientID: 'id',
        clientSecret: 'secret',
        callbackURL: '/callback',
        scope: '',
      },
      ...{ tokenStore: memoryTokenStore(), clock: clock.now },
    });
    onTestFinished(async () => {
      await strategy.close();
      service.close();
    });
    const ids = Array.from({ length: USERS }, (_, user) => String(user));
    for (const id of ids) await strategy.importGrant(id, { refreshToken: `r-${id}` });
    const outcomes = new Map<string, number>();
    for (let poll = 0; poll < POLLS; poll++) {
      await Promise.all(
        ids.map(async (id) => {
          const outcome = await strategy
            .client(id)
            .get('/projects')
            .then(
              () => 'ok',
              (error: Error) => error.name,
            );
          const key = id === '0' ? `dead: ${outcome}` : outcome;
          outcomes.set(key, (outcomes.get(key) ?? 0) + 1);
        }),
      );
      clock.advance(POLL_S);
    }
    expect(Object.fromEntries(outcomes)).toEqual({ ok: (USERS - 1) * POLLS, 'dead: TokenError': POLLS });
    // Two minutes: pauses of 1, 2, 4, 8, 16 and then 30 s. The others refresh once a minute.
    expect(refreshes.get('0')).toBeLessThanOrEqual(9);
    for (const id of ids.slice(1)) expect(refreshes.get(id)).toBeLessThanOrEqual(4);
  },
);
