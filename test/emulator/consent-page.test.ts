import { describe, expect, test } from 'vitest';
import { authorizeUrl, callback, decide, service, startService, startServiceForEachTest } from './plain-client.js';

startServiceForEachTest();

async function page(url: string): Promise<string> {
  return (await fetch(url)).text();
}

function formPost(fields: Record<string, string>, headers: Record<string, string> = {}): Promise<Response> {
  const body = new URLSearchParams(fields);
  return fetch(`${service.authUrl}/oauth/authorize`, { method: 'POST', body, headers, redirect: 'manual' });
}

test('the form carries the request in hidden fields, a user picker with the first one chosen, and two buttons', async () => {
  const html = await page(authorizeUrl({ state: 'a"b' }));
  expect(html).toContain('<form method="post" action="/oauth/authorize">');
  expect(html).toContain('<input type="hidden" name="state" value="a&quot;b">');
  expect(html).toContain(`<input type="hidden" name="redirect_uri" value="${callback}">`);
  expect(html).toContain('<input type="radio" name="user" value="1" checked>');
  expect(html).toContain('<input type="radio" name="user" value="2">');
  expect(html).toMatch(/<button type="submit"[^>]* name="decision" value="approve">Approve<\/button>/);
  expect(html).toMatch(/<button type="submit"[^>]* name="decision" value="decline">Decline<\/button>/);
  expect(html).toContain('Organization acme');
});

test('names of applications, users and scopes, state and redirect URL are escaped', async () => {
  const hostile = `"><img src=x onerror=alert(1)>&'`;
  await startService({
    users: [{ id: hostile, name: hostile }],
    applications: [{ clientID: 'c', name: hostile, redirectUrls: [`${callback}?a='"<b>`] }],
    scopes: { 'a<b>': hostile },
  });
  const url = authorizeUrl({ client_id: 'c', scope: 'a<b>', state: hostile, redirect_uri: `${callback}?a='"<b>` });
  const html = await page(url);
  expect(html).not.toContain('<img');
  expect(html).not.toContain('<b>"');
  const response = await decide(url, { user: hostile });
  expect(new URL(response.headers.get('location') ?? '').searchParams.get('state')).toBe(hostile);
  expect(await page(authorizeUrl({ client_id: hostile }))).not.toContain('<img');
});

test.each(['a good request', 'a refused one'])(
  '%s gets a page that is not framed, stored, referred to or scripted',
  async (kind) => {
    const { headers } = await fetch(authorizeUrl(kind === 'a good request' ? {} : { client_id: 'x' }));
    expect(headers.get('x-frame-options')).toBe('DENY');
    expect(headers.get('cache-control')).toBe('no-store');
    expect(headers.get('referrer-policy')).toBe('no-referrer');
    expect(headers.get('x-content-type-options')).toBe('nosniff');
    const policy = headers.get('content-security-policy') ?? '';
    expect(policy).toMatch(/^default-src 'none'; style-src 'sha256-[^']+'; .*frame-ancestors 'none'$/);
    expect(policy).not.toContain('unsafe');
  },
);

describe('the form', () => {
  test('is checked again as a whole: what it carries could have been changed', async () => {
    const fields = Object.fromEntries(new URL(authorizeUrl()).searchParams);
    const cases = [
      [{ ...fields, user: '1', decision: 'approve' }, 302],
      [{ ...fields, user: '1', decision: 'approve', redirect_uri: 'http://evil.example/' }, 400],
      [{ ...fields, user: '1', decision: 'approve', client_id: 'x' }, 400],
      [{ ...fields, user: '9', decision: 'approve' }, 400],
      [{ ...fields, user: '', decision: 'approve' }, 400],
      [{ ...fields, decision: 'approve' }, 302],
      [{ ...fields, user: '1', decision: 'maybe' }, 400],
      [{ ...fields, user: '1' }, 400],
    ] as const;
    for (const [form, status] of cases) expect((await formPost(form)).status).toBe(status);
  });

  test('is not taken from another site, nor in another format', async () => {
    const fields = { ...Object.fromEntries(new URL(authorizeUrl()).searchParams), user: '1', decision: 'approve' };
    expect((await formPost(fields, { 'sec-fetch-site': 'cross-site' })).status).toBe(403);
    expect((await formPost(fields, { 'content-type': 'application/json' })).status).toBe(400);
  });
});

test.each(['client_id', 'redirect_uri'])('%s given twice is refused without a redirect', async (name) => {
  const url = new URL(authorizeUrl());
  url.searchParams.append(name, url.searchParams.get(name) ?? '');
  const response = await fetch(url, { redirect: 'manual' });
  expect(response.status).toBe(400);
  expect(await response.text()).toContain(`${name} came more than once`);
});

test.each(['response_type', 'scope', 'state'])('%s given twice is sent back as invalid_request', async (name) => {
  const url = new URL(authorizeUrl());
  url.searchParams.append(name, 'x');
  const location = new URL((await fetch(url, { redirect: 'manual' })).headers.get('location') ?? '');
  expect(location.searchParams.get('error')).toBe('invalid_request');
});

test.each(['', ' ', '"project"', 'project "tm"', 'a\\b', 'ä'])(
  'the scope %j is sent back as invalid_scope',
  async (scope) => {
    const response = await fetch(authorizeUrl({ scope }), { redirect: 'manual' });
    expect(new URL(response.headers.get('location') ?? '').searchParams.get('error')).toBe('invalid_scope');
  },
);

test('of many users the page offers a hundred, and the others can still approve', async () => {
  await startService({ users: Array.from({ length: 150 }, (_, n) => ({ id: `u${n}`, name: `User ${n}` })) });
  expect((await page(authorizeUrl())).match(/type="radio"/g)).toHaveLength(100);
  expect(await service.approve(authorizeUrl(), { user: 'u149' })).toContain('code=');
});
