import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import session from 'express-session';
import { requireAuthorization } from 'passport-oauth-app';
import { describe, expect, test } from 'vitest';
import { Browser } from '../support/browser.js';
import { hold } from '../support/hold.js';
import { browser, clock, loggedIn, logIn, open, projects, visit, world } from '../support/one-world.js';
import { grantKeys, references, stored } from '../support/session-entries.js';
import { threats } from '../support/threats.js';
import { TroubledStore } from '../support/troubled-store.js';
import { until } from '../support/until.js';
import { byUser, type Handler, type Req, sendJson, type World, type WorldOptions } from '../support/world.js';

/** Answers a request as a time-out middleware does. */
function answer(res: ServerResponse): void {
  res.statusCode = 503;
  res.setHeader('Connection', 'close');
  res.end('too slow');
}

/** A time-out middleware whose time is over when `verify` runs. */
const overdueAtVerify: WorldOptions = {
  strategy: { passReqToCallback: true },
  verify: (
    req: Req & { res: ServerResponse },
    _a: string,
    _r: string,
    _p: object,
    done: (e: null, u: object) => void,
  ) => {
    answer(req.res);
    done(null, { id: '1' });
  },
};

/** A session store that is so slow that a time-out middleware answers while the new session is saved. */
class SlowStore extends session.MemoryStore {
  pending: ServerResponse | undefined;

  override set(...args: Parameters<session.MemoryStore['set']>): void {
    if (this.pending && !this.pending.headersSent && !('grant' in args[1])) answer(this.pending);
    super.set(...args);
  }
}

async function expectNothingLeft(world: World, browser: Browser): Promise<void> {
  await until(() => expect(world.errors.map(({ code }) => code)).toEqual(['ERR_RESPONSE_SENT']));
  await until(() => expect(grantKeys(world)).toEqual([]));
  await until(() => expect(stored(world).filter(([, entry]) => 'passport' in entry)).toEqual([]));
  expect(references(world)).toEqual([]);
  expect((await browser.visit(`${world.url}/whoami`)).json()).toMatchObject({ authorized: false });
}

describe('a response that a time-out middleware has sent', threats(58), () => {
  test('before the session is established ends in an error, and nothing is left', async () => {
    await open(overdueAtVerify);
    expect((await browser.visit(await world.begin(browser))).text).toBe('too slow');
    await expectNothingLeft(world, browser);
  });

  test('while the token endpoint is slow ends in an error, and nothing is left', async () => {
    let exchanging: ServerResponse | undefined;
    await open({
      before: (app) =>
        app.use('/callback', (_req, res, next) => {
          exchanging = res;
          next();
        }),
    });
    const callback = await world.begin(browser);
    const release = hold(world.service, 'token');
    const page = browser.visit(callback);
    await until(() => expect(world.tokenRequests()).toHaveLength(1));
    if (exchanging) answer(exchanging);
    release();
    expect((await page).text).toBe('too slow');
    await expectNothingLeft(world, browser);
  });

  test.for([
    ['a login', {}],
    ['a connection', { callback: ({ passport }: World) => passport.authorize('oauth-app', {}) as Handler }],
  ] as const)('while the session of %s is saved ends in an error, and nothing is left', async ([, options]) => {
    const store = new SlowStore();
    await open({
      ...options,
      session: { store },
      before: (app) =>
        app.use('/callback', (_req, res, next) => {
          store.pending = res;
          next();
        }),
    });
    expect((await browser.visit(await world.begin(browser))).text).toBe('too slow');
    await expectNothingLeft(world, browser);
  });

  test('while the token store is asked ends in an error, sends no code, and leaves no replay waiting', async () => {
    const tokenStore = new TroubledStore();
    let overdue: ServerResponse | undefined;
    tokenStore.before = (method) => {
      if (method === 'lock' && overdue && !overdue.headersSent) answer(overdue);
    };
    await open({
      strategy: { tokenStore },
      before: (app) =>
        app.use('/callback', (_req, res, next) => {
          overdue ??= res;
          next();
        }),
    });
    const callback = await world.begin(browser);
    expect((await visit(callback)).text).toBe('too slow');
    await until(() => expect(world.errors.map(({ code }) => code)).toEqual(['ERR_RESPONSE_SENT']));
    expect((await visit(callback)).status).toBe(403);
    expect(world.tokenRequests()).toEqual([]);
  });

  test('while a user logs in again leaves the grant of the user to the browsers that have it', async () => {
    const store = new SlowStore();
    await open({
      session: { store },
      strategy: { grantId: (_req: unknown, user: { id: string }) => user?.id },
      before: (app) =>
        app.use('/callback', (req, res, next) => {
          if (req.headers['x-overdue']) store.pending = res;
          next();
        }),
    });
    await logIn();
    const other = new Browser();
    const callback = await world.begin(other);
    expect((await other.visit(callback, { headers: { 'x-overdue': '1' } })).text).toBe('too slow');
    await until(() => expect(world.errors.map(({ code }) => code)).toEqual(['ERR_RESPONSE_SENT']));
    expect((await projects()).status).toBe(200);
    expect(grantKeys(world)).toHaveLength(1);
  });

  test('with session: false and an id of the application ends in an error', async () => {
    await open({
      ...overdueAtVerify,
      strategy: { ...overdueAtVerify.strategy, grantId: byUser },
      authenticate: { session: false, successRedirect: '/' },
    });
    await visit(await world.begin(browser));
    await until(() => expect(world.errors.map(({ code }) => code)).toEqual(['ERR_RESPONSE_SENT']));
    expect(grantKeys(world)).toEqual([]);
  });
});

test('a form whose guard waits for a refresh does not end the process', threats(58), async () => {
  let overdue: ServerResponse | undefined;
  await loggedIn({
    routes: (app) => {
      const hurry: Handler = (_req, res, next) => {
        overdue = res;
        next();
      };
      app.post('/form', hurry, requireAuthorization({ login: '/login' }), (_req, res) => sendJson(res, {}));
    },
  });
  clock.advance(7_200);
  const release = hold(world.service, 'token', { status: 400, body: { error: 'invalid_grant' } });
  const page = visit('/form', { method: 'POST' });
  await until(() => expect(world.tokenRequests()).toHaveLength(1));
  if (overdue) answer(overdue);
  release();
  expect((await page).text).toBe('too slow');
  await until(() => expect(world.errors.map(({ code }) => code)).toEqual(['ERR_NOT_AUTHORIZED']));
});

describe('an async callback of the application that rejects', () => {
  const rejecting: WorldOptions = {
    callback:
      ({ passport }) =>
      (req, res, next) =>
        passport.authenticate('oauth-app', async () => {
          throw new TypeError('a slip in the callback');
        })(req, res, next),
  };

  test.for([
    ['a success', undefined],
    ['an error', { status: 500 }],
  ] as const)('after %s is answered with 500, and the process goes on', async ([, fault]) => {
    await open(rejecting);
    const warned = once(process, 'warning');
    const callback = await world.begin(browser);
    if (fault) world.service.fail('token', fault);
    expect((await visit(callback)).status).toBe(500);
    const [warning] = await warned;
    expect(warning.message).toBe('a slip in the callback');
    expect((await new Browser().visit(`${world.url}/`)).status).toBe(200);
  });
});
