import { jwtVerify } from 'jose';
import { type Emulator, lookup } from 'passport-oauth-app/emulator';
import { Agent, fetch } from 'undici';
import { describe, expect, test } from 'vitest';
import { authorizeUrl, startService } from './plain-client.js';

const dispatcher = new Agent({ connect: { lookup } });

const get = (url: string, headers: Record<string, string> = {}) =>
  fetch(url, { dispatcher, redirect: 'manual', headers });

const authorization = (service: Emulator, changes = {}) => authorizeUrl({ scope: 'tm', ...changes }, service);

/** The address in the frame of a page of the service. */
async function frameOf(address: string): Promise<URL> {
  const page = await (await get(address)).text();
  return new URL((/<iframe [^>]*src="([^"]+)"/.exec(page)?.[1] ?? '').replaceAll('&amp;', '&'));
}

describe('consent that is remembered', () => {
  test('redirects a user who has approved the same scopes before, and no other', async () => {
    const service = await startService({ consent: 'remember' });
    const answered = async (changes = {}) => (await get(authorization(service, changes))).status;
    expect(await answered()).toBe(200);
    await service.approve(authorization(service), { user: '2' });
    const location = new URL((await get(authorization(service))).headers.get('location') ?? '');
    expect([location.pathname, location.searchParams.get('state')]).toEqual(['/callback', 'some-state']);
    expect(location.searchParams.get('code')).toMatch(/\S/);
    const head = await fetch(authorization(service), { method: 'HEAD', redirect: 'manual' });
    expect([head.status, head.headers.get('location')]).toEqual([200, null]);
    expect([await answered({ scope: 'tm project' }), await answered({ prompt: 'consent' })]).toEqual([200, 200]);
    await service.approve(authorization(service, { scope: 'tm project' }), { user: '2' });
    expect(await answered({ scope: 'project tm' })).toBe(302);
    await service.approve(authorization(service), { decline: true });
    expect(await answered()).toBe(302);
    service.revoke('2');
    expect(await answered()).toBe(200);
  });

  test('is forgotten by reset(), and nothing is remembered unless told', async () => {
    const remembering = await startService({ consent: 'remember' });
    await remembering.approve(authorization(remembering));
    remembering.reset();
    expect((await get(authorization(remembering))).status).toBe(200);
    const asking = await startService();
    await asking.approve(authorization(asking));
    expect((await get(authorization(asking))).status).toBe(200);
  });
});

describe('a page that shows an application', () => {
  test('gives the frame a token that the secret of the application has signed', async () => {
    const now = Date.parse('2026-01-02T03:04:05Z');
    const service = await startService({ clock: () => now });
    const secret = new TextEncoder().encode(service.options.clientSecret);
    const url = await frameOf(service.embed('http://app.localhost:3000/board?x=1', { userId: '2' }));
    expect([url.origin, url.pathname, url.searchParams.get('x')]).toEqual(['http://app.localhost:3000', '/board', '1']);
    const { payload, protectedHeader } = await jwtVerify(url.searchParams.get('jwtToken') ?? '', secret, {
      audience: service.options.clientID,
      currentDate: new Date(now),
    });
    expect(protectedHeader.alg).toBe('HS256');
    expect(payload).toMatchObject({ sub: '2', domain: 'acme', context: { user_id: '2' }, iat: now / 1000 });
    expect(payload.exp).toBeGreaterThan(now / 1000);
    const other = await frameOf(service.embed(new URL('https://app.example.net/'), { parameter: 'token' }));
    expect([...other.searchParams.keys()]).toEqual(['token']);
  });

  test('is another site than localhost and 127.0.0.1, and cannot be framed', async () => {
    const service = await startService();
    const address = service.embed('http://app.localhost:3000/');
    expect(new URL(address).origin).toBe(`http://service.localhost:${new URL(service.authUrl).port}`);
    const { headers } = await get(address);
    expect(headers.get('content-security-policy')).toContain("frame-ancestors 'none'");
    expect(service.requests).toEqual([]);
    expect((await get(address, { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'no-cors' })).status).toBe(403);
    expect((await get(`${address}x`)).status).toBe(404);
  });

  test("is read by Node's fetch at authUrl, where no resolver has to know the host", async () => {
    const service = await startService();
    const { pathname } = new URL(service.embed('http://app.localhost:3000/board'));
    const page = await (await globalThis.fetch(service.authUrl + pathname)).text();
    expect(page).toContain('src="http://app.localhost:3000/board?jwtToken=');
  });

  test('preselects its user on the consent page', async () => {
    const service = await startService();
    const checked = async () => /value="(\d+)" checked/.exec(await (await get(authorization(service))).text())?.[1];
    expect(await checked()).toBe('1');
    await get(service.embed('http://app.localhost:3000/', { userId: '2' }));
    expect(await checked()).toBe('2');
  });

  test('refuses what is no page, no user and no option', async () => {
    const service = await startService();
    for (const url of ['/board', 'javascript:alert(1)', 'data:text/html,x', undefined])
      expect(() => service.embed(url as string)).toThrow(/^embed\(\): the URL/);
    expect(() => service.embed('http://a.b', { userId: '9' })).toThrow(/The user/);
    expect(() => service.embed('http://a.b', { user: '1' } as object)).toThrow(/unknown key/);
  });
});

test('consent pages cannot be framed, and have Cross-Origin-Opener-Policy where it is set', async () => {
  const service = await startService({ crossOriginOpenerPolicy: 'same-origin' });
  const { headers } = await get(authorization(service));
  expect(headers.get('cross-origin-opener-policy')).toBe('same-origin');
  expect(headers.get('x-frame-options')).toBe('DENY');
  expect(headers.get('content-security-policy')).toContain("frame-ancestors 'none'");
  expect((await get(authorization(await startService()))).headers.get('cross-origin-opener-policy')).toBeNull();
  await expect(startService({ crossOriginOpenerPolicy: 'x' as 'same-origin' })).rejects.toThrow(
    /crossOriginOpenerPolicy/,
  );
});
