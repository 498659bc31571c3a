import { request as send } from 'node:http';
import type { Fault } from 'passport-oauth-app/emulator';
import { describe, expect, test } from 'vitest';
import { hold } from '../support/hold.js';
import {
  authorizeUrl,
  body,
  codeFor,
  exchange,
  projects,
  type Refusal,
  refresh,
  service,
  startService,
  startServiceForEachTest,
  type Tokens,
  tokensFor,
} from './plain-client.js';

startServiceForEachTest();

/** Sends a code, and gives up once the service has it. */
async function giveUp(code: string): Promise<void> {
  service.requests.length = 0;
  const client = new AbortController();
  const given = exchange(code, {}, { signal: client.signal });
  await expect.poll(() => service.requests).toHaveLength(1);
  client.abort();
  await expect(given).rejects.toThrow();
}

/** The statuses of so many requests in a row. */
async function statusesOf(count: number, send: () => Promise<Response>): Promise<number[]> {
  const statuses: number[] = [];
  for (let n = 0; n < count; n += 1) statuses.push((await send()).status);
  return statuses;
}

describe('a fault that replaces the answer', () => {
  test('an empty fault is a 500 with a JSON error body, once, and the request has no effect', async () => {
    const { refresh_token } = await tokensFor();
    service.fail('token');
    const failed = await refresh(refresh_token);
    expect(failed.status).toBe(500);
    expect(await body<Refusal>(failed)).toMatchObject({ error: 'server_error' });
    expect((await refresh(refresh_token)).status).toBe(200);
  });

  test('a status comes with an error body in the shape of the API, and with the headers that were asked for', async () => {
    service.fail('api', { status: 503, headers: { 'Retry-After': '7' } });
    const response = await projects('any');
    expect(response.status).toBe(503);
    expect(response.headers.get('retry-after')).toBe('7');
    expect(response.headers.get('content-type')).toBe('application/json');
    expect(await response.json()).toEqual({ error: { message: 'This fault was injected by a test.', code: 503 } });
  });

  test.each<[unknown, number, string, string]>([
    ['<h1>Bad gateway</h1>', 200, 'text/html; charset=utf-8', '<h1>Bad gateway</h1>'],
    ['out of order', 200, 'text/plain; charset=utf-8', 'out of order'],
    ['', 200, 'text/plain; charset=utf-8', ''],
    [null, 200, 'application/json', 'null'],
    [[], 200, 'application/json', '[]'],
    [{ access_token: 'x' }, 200, 'application/json', '{"access_token":"x"}'],
    [{ error: 'invalid_grant' }, 400, 'application/json', '{"error":"invalid_grant"}'],
    [{ error: 'invalid_client' }, 401, 'application/json', '{"error":"invalid_client"}'],
    [Buffer.from('bytes'), 200, 'application/octet-stream', 'bytes'],
    [new URLSearchParams({ error: 'bad_token' }), 400, 'application/x-www-form-urlencoded', 'error=bad_token'],
  ])('the body %j is sent with the status and type that suit it', async (sent, status, type, text) => {
    service.fail('token', { body: sent });
    const response = await exchange('any');
    expect([response.status, await response.text()]).toEqual([status, text]);
    expect(response.headers.get('content-type')).toBe(type);
  });

  test('status and content type can be told apart from the body', async () => {
    service.fail('token', { status: 502, body: '{"a":', headers: { 'content-type': 'application/json' } });
    const response = await exchange('any');
    expect(response.status).toBe(502);
    expect(response.headers.get('content-type')).toBe('application/json');
    await expect(response.json()).rejects.toThrow(SyntaxError);
  });

  test('an answer can be cut off: a length that is never reached, and the connection closed', async () => {
    service.fail('token', { body: '{"access', headers: { 'content-length': '500', connection: 'close' } });
    const response = await exchange('any');
    await expect(response.text()).rejects.toThrow();
  });
});

describe('a fault in which no answer comes', () => {
  test('reset ends the connection with a TCP reset', async () => {
    service.fail('api', { reset: true });
    const failure = await new Promise<NodeJS.ErrnoException>((resolve) => {
      send(`${service.baseUrl}/api/v2/projects`).on('error', resolve).end();
    });
    expect(failure.code).toBe('ECONNRESET');
  });

  test('hang never answers, and close() ends it', async () => {
    service.fail('authorize', { hang: true });
    const pending = fetch(authorizeUrl());
    await expect.poll(() => service.requests).toHaveLength(1);
    const closed = service.close();
    await expect(pending).rejects.toThrow();
    await closed;
  });

  test('a client that gives up on a hanging request leaves the service in order', async () => {
    service.fail('token', { hang: true });
    await giveUp('any');
    expect((await exchange(await codeFor())).status).toBe(200);
  });

  test.each<[string, Fault, number]>([
    ['alone serves the request as usual, after requests that are not delayed', {}, 400],
    ['comes before the rest of the fault', { status: 503 }, 503],
  ])('delay %s', async (_what, fault, status) => {
    const { refresh_token } = await tokensFor();
    service.requests.length = 0;
    const release = hold(service, 'token', fault);
    const finished: string[] = [];
    const delayed = refresh(refresh_token).then((answer) => finished.push(`delayed ${answer.status}`));
    await expect.poll(() => service.requests).toHaveLength(1);
    finished.push(`next ${(await refresh(refresh_token)).status}`);
    release();
    await delayed;
    expect(finished).toEqual(['next 200', `delayed ${status}`]);
  });

  test.each([
    ['a delay', { delay: 2 ** 31 - 1 }, {}],
    ['the latency of every request', undefined, { latency: [2 ** 30, 2 ** 31 - 1] }],
  ] as const)('close() does not wait for %s', async (_what, fault, options) => {
    await startService(options);
    if (fault) service.fail('api', fault);
    const pending = projects('any').catch(() => 'ended');
    await expect.poll(() => service.requests).toHaveLength(1);
    await service.close();
    expect(await pending).toBe('ended');
  });
});

describe('delay ranges, rates and latency', () => {
  test.each<[string, Fault[], number[]]>([
    ['a range of delays stays within its ends', [{ delay: [1, 20], times: 3 }], [400, 400, 400]],
    ['a fault strikes what the rate before it leaves', [{ status: 503, rate: 1e-9 }, { status: 429 }], [429, 400]],
    ['times limits how often a rate strikes', [{ status: 503, rate: 1, times: 2 }], [503, 503, 400]],
    ['faults strike in the order of their calls', [{ status: 502, times: 2 }, { status: 429 }], [502, 502, 429, 400]],
  ])('%s, and other requests are served', async (_what, faults, statuses) => {
    for (const fault of faults) service.fail('token', fault);
    expect(await statusesOf(statuses.length, () => exchange('any'))).toEqual(statuses);
  });

  test('a rate affects its share of the requests until it is removed, the same share with the same seed', async () => {
    const runs: number[][] = [];
    for (let run = 0; run < 2; run += 1) {
      const seeded = await startService({ seed: 'faults' });
      const cancel = seeded.fail('token', { status: 503, rate: 0.5 });
      runs.push(await statusesOf(40, () => exchange('any')));
      cancel();
      expect((await exchange('any')).status).toBe(400);
    }
    expect(runs[0]).toEqual(runs[1]);
    expect(new Set(runs[0])).toEqual(new Set([400, 503]));
  });

  test('latency delays every request, which is served then', async () => {
    await startService({ latency: 1 });
    expect((await projects('any')).status).toBe(401);
  });
});

describe('afterEffect: the answer is lost after it took effect', () => {
  test.each<Fault>([{}, { reset: true }, { status: 503 }, { body: '<html>' }, { delay: 5 }])(
    'the rotation took place, but %j came instead of the new pair',
    async (fault) => {
      const { refresh_token } = await tokensFor();
      service.fail('token', { ...fault, afterEffect: true });
      const lost = await refresh(refresh_token).then(
        (response) => response.text(),
        () => '',
      );
      expect(lost).not.toContain('access_token');
      const again = await refresh(refresh_token);
      expect(again.status).toBe(400);
      expect(await body<Refusal>(again)).toMatchObject({ error: 'invalid_grant' });
    },
  );

  test('with refreshTokenReuse: grace the lost pair can be fetched once more', async () => {
    const graceful = await startService({ refreshTokenReuse: 'grace' });
    const { refresh_token } = await tokensFor();
    graceful.fail('token', { afterEffect: true });
    await expect(refresh(refresh_token)).rejects.toThrow();
    const { access_token } = await body<Tokens>(await refresh(refresh_token));
    expect((await projects(access_token)).status).toBe(200);
  });

  test('a code is used up although its tokens never arrived', async () => {
    const code = await codeFor();
    service.fail('token', { afterEffect: true, hang: true });
    await giveUp(code);
    expect((await exchange(code)).status).toBe(400);
  });
});

describe('several faults', () => {
  test('each endpoint has its own, and the others work', async () => {
    service.fail('api', { status: 502, times: 2 });
    expect((await fetch(authorizeUrl())).status).toBe(200);
    const { access_token } = await tokensFor();
    expect(await statusesOf(3, () => projects(access_token))).toEqual([502, 502, 200]);
  });

  test('Infinity lasts until the fault is taken back', async () => {
    const cancel = service.fail('authorize', { status: 500, times: Number.POSITIVE_INFINITY });
    expect(await statusesOf(3, () => fetch(authorizeUrl()))).toEqual([500, 500, 500]);
    cancel();
    expect((await fetch(authorizeUrl())).status).toBe(200);
    cancel();
  });

  test('requests that were struck are recorded like all others', async () => {
    service.fail('token', { reset: true });
    await expect(exchange('a-code')).rejects.toThrow();
    expect(service.requests).toMatchObject([{ method: 'POST', path: '/oauth/token', body: { code: 'a-code' } }]);
  });
});

test.each<[unknown, unknown, RegExp]>([
  ['tokens', {}, /the endpoint must be one of 'authorize', 'token', 'revoke', 'api'/],
  ['token', { stauts: 500 }, /unknown key "stauts".*Known are: status/],
  ['token', { status: 99 }, /^status must be a whole number from 200 to 599, but it is 99/],
  ['token', { status: '500' }, /^status must be/],
  ['token', { delay: -1 }, /^delay must be/],
  ['token', { delay: 2 ** 31 }, /^delay must be/],
  ['token', { delay: [1] }, /^delay must be a range/],
  ['token', { delay: [5, 1] }, /^delay must be a range/],
  ['token', { delay: [1, 2, 3] }, /^delay must be a range/],
  ['token', { rate: 0 }, /^rate must be a number above 0 and up to 1/],
  ['token', { rate: 1.1 }, /^rate must be/],
  ['token', { times: 0 }, /^times must be/],
  ['token', { hang: 'yes' }, /^hang must be true or false/],
  ['token', { headers: { 'a b': 'c' } }, /^headers\["a b"\] must be a valid header/],
  ['token', { headers: { a: 'b\r\nc' } }, /^headers\["a"\] must be a valid header/],
  ['token', { headers: { a: 1 } }, /must be a string/],
  ['token', 'hang', /must be an object/],
])('fail(%j, %j) is refused with a message that says what is expected', (endpoint, fault, message) => {
  expect(() => Reflect.apply(service.fail, service, [endpoint, fault])).toThrow(message);
});
