import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import fastifyCookie from '@fastify/cookie';
import { Authenticator } from '@fastify/passport';
import fastifySession from '@fastify/session';
import fastify from 'fastify';
import Koa, { type Context } from 'koa';
import koaPassport from 'koa-passport';
import koaSession from 'koa-session';
import { apiClient, logout, requireAuthorization, Strategy } from 'passport-oauth-app';
import { describe, expect, onTestFinished, test } from 'vitest';
import { hasChromium, startChromium } from '../support/chromium.js';
import { rawRequest } from '../support/raw-request.js';
import { threats } from '../support/threats.js';

const options = {
  ...{ authUrl: 'http://localhost:1', baseUrl: 'http://localhost:1', clientID: 'id', clientSecret: 'secret' },
  ...{ callbackURL: 'http://localhost/callback', scope: 'tm' },
};

const mixedHook = (handler: ReturnType<typeof apiClient>) =>
  ((request: never, reply: { raw: never }, done: () => void) => handler(request, reply.raw, done)) as never;

describe("a framework's own Passport port gets an error that names what works", threats(63), () => {
  /** An application of Fastify, with @fastify/passport. @returns its origin */
  async function startFastify(): Promise<string> {
    const app = fastify();
    const passport = new Authenticator();
    const strategy = new Strategy(options);
    passport.use('oauth-app', strategy as never);
    app.register(fastifyCookie);
    app.register(fastifySession, { secret: 'a secret of at least thirty-two characters', cookie: { secure: false } });
    app.register(passport.initialize());
    app.register(passport.secureSession());
    const authenticate = passport.authenticate('oauth-app') as never;
    app.get('/login', { preValidation: authenticate }, async () => 'never');
    app.get('/callback', { preValidation: authenticate }, async () => 'never');
    app.get('/client', { preHandler: apiClient(strategy) as never }, async () => 'never');
    app.get('/guarded', { preHandler: requireAuthorization() as never }, async () => 'never');
    app.get('/logout', { preHandler: logout(strategy) as never }, async () => 'never');
    // A hook that hands over Fastify's request with Node's response.
    const mixed = { preValidation: [mixedHook(apiClient(strategy)), authenticate] };
    app.get('/mixed/login', mixed, async () => 'never');
    app.get('/mixed/callback', mixed, async () => 'never');
    app.setErrorHandler((error, _request, reply) => {
      reply
        .status(500)
        .send({ code: Reflect.get(Object(error), 'code'), message: Reflect.get(Object(error), 'message') });
    });
    onTestFinished(async () => {
      await app.close();
      await strategy.close();
    });
    return app.listen({ port: 0, host: '127.0.0.1' });
  }

  test('Fastify: login, callback and each middleware', async () => {
    const origin = await startFastify();
    const callback = `/callback?code=a&state=${'A'.repeat(43)}`;
    const mixedPaths = ['/mixed/login', `/mixed${callback}`];
    for (const path of ['/login', callback, '/client', '/guarded', '/logout', ...mixedPaths]) {
      const answer = await rawRequest(origin, path);
      expect([path, answer.status, JSON.parse(answer.text).code]).toEqual([path, 500, 'ERR_FRAMEWORK']);
      expect(answer.text).toContain('@fastify/express');
    }
  });

  test.skipIf(!hasChromium())(
    'Fastify, with apiClient as a hook: a browser sees the error in place of a login',
    async () => {
      const [origin, chromium] = [await startFastify(), await startChromium()];
      onTestFinished(() => chromium.close());
      const { page } = await chromium.visit();
      for (const path of ['/mixed/login', `/mixed/callback?code=a&state=${'A'.repeat(43)}`]) {
        const answer = await page.goto(origin + path);
        expect([answer?.status(), page.url()]).toEqual([500, origin + path]);
        expect(await page.textContent('body')).toMatch(/"ERR_FRAMEWORK".*@fastify\/express/);
      }
    },
  );

  test('Koa: login, callback and each middleware', async () => {
    const app = new Koa();
    const strategy = new Strategy(options);
    const passport = new koaPassport.KoaPassport();
    passport.use('oauth-app', strategy as never);
    app.keys = ['key'];
    app.silent = true;
    app.use(async (ctx: Context, next: () => Promise<void>) => {
      await next().catch((error) => {
        ctx.status = 500;
        ctx.body = { code: error.code, message: error.message };
      });
    });
    app.use(koaSession(app));
    app.use(passport.initialize());
    app.use(passport.session());
    const routes: Record<string, (...args: never[]) => unknown> = {
      '/login': passport.authenticate('oauth-app') as () => unknown,
      '/callback': passport.authenticate('oauth-app') as () => unknown,
      '/client': apiClient(strategy),
      '/guarded': requireAuthorization(),
      '/logout': logout(strategy),
    };
    app.use((ctx: Context, next: () => Promise<void>) => routes[ctx.path]?.(ctx as never, next as never));
    const server = app.listen(0, '127.0.0.1');
    await once(server, 'listening');
    onTestFinished(async () => {
      server.close();
      await strategy.close();
    });
    const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    for (const path of ['/login', `/callback?code=a&state=${'A'.repeat(43)}`, '/client', '/guarded', '/logout']) {
      const answer = await rawRequest(origin, path);
      expect([path, answer.status, JSON.parse(answer.text).code]).toEqual([path, 500, 'ERR_FRAMEWORK']);
      expect(answer.text).toContain('koa-connect');
    }
  });
});
