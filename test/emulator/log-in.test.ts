import { exec } from 'node:child_process';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { promisify } from 'node:util';
import express from 'express';
import request from 'supertest';
import { describe, expect, test } from 'vitest';
import {
  authorizeUrl,
  body,
  callback,
  exchange,
  projects,
  service,
  startServiceForEachTest,
  type Tokens,
} from './plain-client.js';

startServiceForEachTest();

/** An application with nothing but a login: it keeps the access token in a cookie, which no real one should do. */
function application(redirectUri: () => string = () => callback) {
  return createServer({ keepAliveTimeout: 0 }, (incoming, response) => {
    answer(incoming, response, redirectUri()).catch(() => response.writeHead(500).end());
  });
}

async function answer(
  { url = '/', headers }: IncomingMessage,
  response: ServerResponse,
  redirect_uri: string,
): Promise<void> {
  const { pathname, searchParams } = new URL(url, 'http://localhost');
  const redirect = (location: string, cookie: readonly string[] = []) =>
    void response.writeHead(302, { location, 'set-cookie': [...cookie] }).end();
  const token = /token=([^;]+)/.exec(headers.cookie ?? '')?.[1];
  if (pathname === '/login') return redirect(authorizeUrl({ redirect_uri }), ['pending=1; HttpOnly']);
  if (pathname === '/forever') return redirect('/forever');
  if (pathname === '/out') return redirect('/', ['token=; Max-Age=0']);
  if (pathname === '/callback') {
    if (searchParams.get('error') !== null || !headers.cookie?.includes('pending=1')) return redirect('/declined');
    const tokens = await body<Tokens>(await exchange(searchParams.get('code') ?? '', { redirect_uri }));
    return redirect('/', [`token=${tokens.access_token}; Path=/`, 'pending=; Expires=Thu, 01 Jan 1970 00:00:00 GMT']);
  }
  const page = token === undefined ? `anonymous at ${pathname}` : await (await projects(token)).text();
  response.end(page);
}

describe('approve()', () => {
  test('turns an authorization request into the callback URL', async () => {
    const url = new URL(await service.approve(authorizeUrl(), { user: '2' }));
    expect(url.href.startsWith(`${callback}?code=`)).toBe(true);
    const { access_token } = await body<Tokens>(await exchange(url.searchParams.get('code') ?? ''));
    expect(await (await projects(access_token)).text()).toContain('Acme Storefront');
  });

  test('returns an error that the service sends back', async () => {
    const url = await service.approve(authorizeUrl({ scope: undefined }));
    expect(new URL(url).searchParams.get('error')).toBe('invalid_request');
  });

  test('reports why the service does not redirect', async () => {
    const page = await (await fetch(authorizeUrl({ redirect_uri: "http://localhost:8080/it's" }))).text();
    const [, command = ''] = /<pre>([^<]*)<\/pre>/.exec(page.replaceAll('&quot;', '"').replaceAll('&#39;', "'")) ?? [];
    expect((await promisify(exec)(command)).stdout).toContain("http://localhost:8080/it's");
    expect(await service.approve(authorizeUrl({ redirect_uri: "http://localhost:8080/it's" }))).toContain("it's?code=");
    await expect(service.approve(authorizeUrl({ redirect_uri: 'http://evil.example/' }))).rejects.toThrow(
      /answered the authorization request with 400 instead of a redirect\. The parameter redirect_uri is not registered/,
    );
  });

  test('takes the service by another of its loopback names', async () => {
    const url = authorizeUrl().replace('127.0.0.1', 'localhost');
    expect(await service.approve(url)).toContain('?code=');
  });

  test('takes no other URL and no unknown user', async () => {
    await expect(service.approve('http://127.0.0.1:1/oauth/authorize')).rejects.toThrow(
      /must be an authorization request to/,
    );
    await expect(service.approve(`${service.authUrl}/other`)).rejects.toThrow(/must be an authorization request to/);
    await expect(service.approve(authorizeUrl(), { user: 'nobody' })).rejects.toThrow(/must be the id of a user/);
  });

  test('its requests are recorded, and faults strike them', async () => {
    await service.approve(authorizeUrl());
    expect(service.requests.map(({ method, path }) => `${method} ${path}`)).toEqual([
      'GET /oauth/authorize',
      'POST /oauth/authorize',
    ]);
    service.fail('authorize', { status: 502 });
    await expect(service.approve(authorizeUrl())).rejects.toThrow(/with 502/);
  });
});

describe('logIn() with a supertest agent', () => {
  test('logs in as the first user, or as the one who is named', async () => {
    const [ada, ben] = [request.agent(application()), request.agent(application())];
    const response = await service.logIn(ada);
    expect([response.status, response.text]).toEqual([200, expect.stringContaining('Pocket Garden')]);
    await service.logIn(ben, { user: '2', login: '/login?from=test' });
    expect((await ben.get('/')).text).toContain('Acme Storefront');
    expect((await ada.get('/')).text).toContain('Pocket Garden');
  });

  test('sends the Accept of a browser, so that a page behind a login redirects to it', async () => {
    const accepted: (string | undefined)[] = [];
    const server = application();
    server.on('request', ({ headers }) => accepted.push(headers.accept));
    await service.logIn(request.agent(server));
    expect(accepted).toHaveLength(3);
    for (const accept of accepted) expect(accept).toMatch(/^text\/html,/);
  });

  test('takes an agent whose requests cannot set headers', async () => {
    const agent = request.agent(application());
    const plain = { get: (path: string) => agent.get(path).then((answer) => answer) };
    expect((await service.logIn(plain)).status).toBe(200);
  });

  test('declines with the option decline', async () => {
    expect((await service.logIn(request.agent(application()), { decline: true })).text).toBe('anonymous at /declined');
  });

  test.for<[what: string, browser: unknown, options: object | undefined, message: RegExp]>([
    ['nothing', undefined, undefined, /^logIn\(\): the first argument must be a supertest agent, .*missing\.$/],
    ['null', null, undefined, /^logIn\(\): the first argument must be a supertest agent/],
    ['an application', express(), undefined, /^logIn\(\): the first argument must be a supertest agent/],
    [
      'an unknown option',
      request.agent(application()),
      { usr: '2' },
      /^logIn\(\): the options has the unknown key "usr"\. Known are: login, /,
    ],
    ['a scope that is no list', request.agent(application()), { scope: 'project' }, /^scope must be a list/],
  ])('refuses %s', async ([, browser, options, message]) => {
    await expect(service.logIn(browser as never, options as never)).rejects.toThrow(message);
  });

  test('an application that does not come to the service is an error that says where it stopped', async () => {
    const agent = request.agent(application());
    await expect(service.logIn(agent, { login: '/elsewhere' })).rejects.toThrow(
      '/elsewhere answered with 200 instead of a redirect to the service',
    );
    await expect(service.logIn(agent, { login: '/forever' })).rejects.toThrow(/redirected more than 10 times/);
  });
});

describe('logIn() with fetch', () => {
  test('returns the last response, and a fetch that is logged in and keeps further cookies', async () => {
    let origin = '';
    const server = application(() => `${origin}/callback`);
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const address = server.address();
    origin = `http://127.0.0.1:${typeof address === 'object' ? address?.port : 0}`;
    service.register({ clientID: service.options.clientID, redirectUrls: [`${origin}/callback`] });

    const ben = await service.logIn(fetch, { login: `${origin}/login`, user: '2' });
    expect([ben.response.status, await ben.response.text()]).toEqual([200, expect.stringContaining('Acme Storefront')]);
    expect(ben.cookie).toMatch(/^token=[\w.-]+$/);
    expect(await (await fetch(origin, { headers: { cookie: ben.cookie } })).text()).toContain('Acme Storefront');
    expect(await (await ben.fetch(origin)).text()).toContain('Acme Storefront');
    expect(await (await ben.fetch(`${origin}/out`)).text()).toBe('anonymous at /');
    const elsewhere = 'http://127.0.0.1:1/callback';
    service.register({ clientID: service.options.clientID, redirectUrls: [elsewhere] });
    const real = origin;
    origin = 'http://127.0.0.1:1';
    await expect(service.logIn(fetch, { login: `${real}/login` })).rejects.toThrow(
      expect.objectContaining({
        code: 'ERR_EMULATOR_APPROVAL',
        message: expect.stringContaining(
          `began at ${real} and leads to ${elsewhere}, which cannot be reached. Set callbackURL`,
        ),
      }),
    );
    server.close();
  });

  test('the login must be an absolute URL', async () => {
    await expect(service.logIn(fetch, { login: '/login' })).rejects.toThrow(
      /must be an absolute URL where fetch is used/,
    );
  });
});
