import { ServerResponse } from 'node:http';
import { describe, expect } from 'vitest';
import { LoginRounds, NO_ACCOUNT } from '../../src/advice/login-rounds.js';
import { Secret } from '../../src/redaction.js';
import type { GrantManager } from '../../src/refresh/grant-manager.js';
import { CookieSeal } from '../../src/session/cookie-seal.js';
import { test as base, tokens } from '../refresh/fixture.js';
import { TestClock } from '../support/test-clock.js';
import { Jar, overTls, requestOf, setCookies, turns } from './fixture.js';

const NAME = 'oauth-app.rounds';
const seal = new CookieSeal('of this test', [new Secret('the secret')]);

/** A browser that logs in, and what counts its rounds. */
class Rounds {
  readonly clock = new TestClock();
  readonly rounds = new LoginRounds(NAME, seal, this.clock.now);
  readonly jar = new Jar();
  readonly #manager: GrantManager;

  constructor(manager: GrantManager) {
    this.#manager = manager;
  }

  count(account: string, grantId = ''): void {
    this.jar.visit((req, res) => this.rounds.count(req, res, account, grantId, this.#manager));
  }

  comeBack(found: 'grant' | 'lost' | 'none'): readonly string[] {
    return this.jar.visit((req, res) => {
      this.rounds.noteReturn(req, res, found);
      return setCookies(res);
    });
  }

  /** Returns the message of the error that the next login ends with. */
  refuse(account: string, added: object = {}): Promise<string | undefined> {
    const req = this.jar.request({}, added);
    return this.jar.visit(async (_req, res) => {
      try {
        await this.rounds.refuseLoop(req, res, account, this.#manager);
        return undefined;
      } catch (error) {
        expect(error).toMatchObject({ name: 'ConfigurationError', code: 'ERR_LOGIN_LOOP' });
        return (error as Error).message;
      } finally {
        this.jar.take(res);
      }
    }, req);
  }
}

const test = base.extend<{ readonly loop: Rounds }>({
  loop: async ({ grants }, use) => use(new Rounds(grants.manager)),
});

const ONE_BROWSER = 'If this happens in one browser alone, delete its cookies for this site and its sibling hosts.';
const told = (rounds: number, story: string) =>
  `The browser has logged in ${rounds} times within a minute before this login, and ${story} ${ONE_BROWSER}`;
const WITHOUT_SESSION = 'came back without a session, or without its user, each time.';
const LIKELY_CAUSES =
  'Likely causes: the session cookie is dropped (secure without https, SameSite=Strict, another domain or path), the session store loses sessions, requireAuthorization() or apiClient() stands before the session, deserializeUser refuses the user, the option grantId returns another id for the user of deserializeUser than for that of verify, or failureRedirect leads to the login route.';
const NONE = `${WITHOUT_SESSION} ${LIKELY_CAUSES}`;
const LOST =
  "came back with its session each time, but its grant was not found. Likely causes: the option grantId returns another id for the user of deserializeUser than for that of verify, or the application's processes have different encryptionKeys, or token stores of their own (in memory, for example).";

type Step = 'ada' | 'grace' | 'failed' | 'lost' | 'none' | 'grant' | '59 s' | '60 s' | '2 min back';
test.for<[steps: Step[], message: string | undefined]>([
  [['ada', 'none', 'ada', 'none'], told(2, NONE)],
  [['ada', 'lost', 'ada', 'lost'], told(2, LOST)],
  [['ada', 'none', 'ada', 'none', 'ada', 'none'], told(3, NONE)],
  [['ada', 'none', 'ada', 'none', '59 s'], told(2, NONE)],
  [['ada', 'none', '59 s', 'ada', 'none', '59 s'], told(2, NONE)],
  [['ada', 'none', 'ada', 'none', '60 s'], undefined],
  [['ada', 'none', '60 s', 'ada', 'none'], undefined],
  [['ada', 'none', 'ada', 'none', '2 min back'], undefined],
  [['ada', 'none'], undefined],
  [['ada', 'none', 'ada'], undefined],
  [['ada', 'ada', 'none'], undefined],
  [['grace', 'none', 'ada', 'none'], undefined],
  [['ada', 'none', 'ada', 'none', 'grace', 'none'], undefined],
  [['failed', 'none', 'ada', 'none'], undefined],
  [['ada', 'none', 'ada', 'none', 'grant'], undefined],
  // Another process may not find the grant that this one finds.
  [['ada', 'lost', 'ada', 'lost', 'grant'], told(2, LOST)],
  [['ada', 'lost', 'ada', 'lost', 'none'], told(2, LOST)],
  [['ada', 'none', 'ada', 'none', 'lost'], told(2, LOST)],
  [['none', 'lost', 'grant'], undefined],
])('after %j the next login ends with %j', async ([steps, message], { loop }) => {
  for (const step of steps) {
    if (step === 'lost' || step === 'none' || step === 'grant') loop.comeBack(step);
    else if (step === '59 s') loop.clock.advance(59);
    else if (step === '60 s') loop.clock.advance(60);
    else if (step === '2 min back') loop.clock.advance(-120.001);
    else loop.count(step === 'failed' ? NO_ACCOUNT : step);
  }
  expect(await loop.refuse('ada')).toBe(message);
  // It starts anew.
  expect(await loop.refuse('ada')).toBeUndefined();
  if (message) expect(loop.jar.names).toEqual([]);
});

test('logins that fail are rounds without a return', async ({ loop }) => {
  loop.count(NO_ACCOUNT);
  expect(await loop.refuse(NO_ACCOUNT)).toBeUndefined();
  loop.count(NO_ACCOUNT);
  expect(await loop.refuse('ada')).toBeUndefined();
  expect(await loop.refuse(NO_ACCOUNT)).toBe(told(2, NONE));
});

describe('the grant of a round', () => {
  test('is deleted by the next login that succeeds, or that is refused, and by no other', async ({ loop, grants }) => {
    const put = (id: string) => grants.manager.put(id, tokens(id));
    const isThere = (...ids: string[]) => Promise.all(ids.map((id) => grants.manager.has(id)));
    for (const id of ['1', '2', '3']) await put(id);
    loop.count('ada', '1');
    loop.count(NO_ACCOUNT, 'unused');
    loop.count(NO_ACCOUNT);
    expect(await loop.refuse(NO_ACCOUNT)).toBe(told(2, NONE));
    expect(await isThere('1', '2', '3')).toEqual([true, true, true]);
    loop.count('ada', '1');
    loop.comeBack('none');
    loop.count(NO_ACCOUNT);
    loop.count('ada', '2');
    await turns();
    expect(await isThere('1', '2')).toEqual([false, true]);
    loop.comeBack('none');
    loop.count('ada', '3');
    await turns();
    expect(await isThere('2', '3')).toEqual([false, true]);
    loop.comeBack('none');
    expect(await loop.refuse('ada')).toBe(told(2, NONE));
    expect(await isThere('3')).toEqual([false]);
  });

  test('is not looked for where the session does not hold its id', async ({ loop, grants }) => {
    for (const _round of [1, 2]) {
      loop.count('ada');
      loop.comeBack('none');
    }
    expect(await loop.refuse('ada')).toBe(told(2, NONE));
    await turns();
    expect(grants.store.calls).toEqual([]);
  });

  test('fails no login if the store fails, but one that is refused', async ({ loop, grants }) => {
    grants.store.fail();
    for (const id of ['1', '2']) {
      loop.count('ada', id);
      loop.comeBack('none');
    }
    await expect(loop.refuse('ada')).rejects.toThrow();
  });
});

describe('the cookie', () => {
  test('lives for a minute, and is of its own host alone over TLS', ({ loop, grants }) => {
    for (const [added, name] of [
      [{}, NAME],
      [overTls(), `__Host-${NAME}`],
    ] as const) {
      const req = requestOf({}, added);
      const res = new ServerResponse(req);
      loop.rounds.count(req, res, 'ada', '', grants.manager);
      expect(setCookies(res)).toEqual([expect.stringMatching(new RegExp(`^${name}=[\\w-]+; Max-Age=60; Path=/;`))]);
    }
  });

  test('of another host, or for another name, counts for nothing', async ({ loop }) => {
    for (const _round of [1, 2]) {
      loop.count('ada');
      loop.comeBack('none');
    }
    const { header = '' } = loop.jar;
    const refuse = (cookie: string, added: object) =>
      loop.rounds.refuseLoop(requestOf({ cookie }, added), new ServerResponse(requestOf()), 'ada', {} as GrantManager);
    await expect(refuse(header, {})).rejects.toThrow();
    await refuse(header, overTls());
    await refuse(`__Host-${header}`, overTls());
    await refuse(header.replace(NAME, `${NAME}-other`), {});
    expect(loop.rounds.hasLost(requestOf({ cookie: `${NAME}=planted` }))).toBe(false);
  });

  test('is in a request that has its name', ({ loop }) => {
    expect(loop.rounds.isIn(requestOf({ cookie: `a=1; __Host-${NAME}=2` }))).toBe(true);
    expect(loop.rounds.isIn(requestOf({ cookie: 'a=1' }))).toBe(false);
    expect(loop.rounds.isIn(requestOf())).toBe(false);
  });

  test.for<[what: string, steps: ('lost' | 'none' | 'grant')[], ages: string]>([
    ['is written once for each way back', ['none', 'none', 'lost', 'lost', 'none'], '60 - 60 - -'],
    ['ends with a grant', ['none', 'grant', 'grant'], '60 0 -'],
    ['stays once the grant was not found', ['lost', 'grant'], '60 -'],
  ])('%s', ([, steps, ages], { loop }) => {
    loop.count('ada', '1');
    const found = steps.map((step) => /Max-Age=(\d+)/.exec(loop.comeBack(step).join())?.[1] ?? '-');
    expect(found.join(' ')).toBe(ages);
  });

  test('is left alone where it is not there, cannot be read, or the response is on its way', ({ loop }) => {
    const note = (cookie: string, found: 'none' | 'grant', res = new ServerResponse(requestOf())) => {
      loop.rounds.noteReturn(requestOf(cookie ? { cookie } : {}), res, found);
      return setCookies(res);
    };
    expect(note('', 'none')).toEqual([]);
    expect(note('', 'grant')).toEqual([]);
    expect(note(`__Host-${NAME}=1`, 'grant')).toEqual([]);
    expect(note(`${NAME}=planted`, 'none')).toEqual([]);
    expect(note(`${NAME}=planted`, 'grant')).toEqual([expect.stringContaining(`${NAME}=; Max-Age=0`)]);
    loop.count('ada');
    const sent = new ServerResponse(requestOf());
    sent.flushHeaders();
    expect(note(loop.jar.header ?? '', 'none', sent)).toEqual([]);
  });

  test('is ended by a reset, if there is one', ({ loop }) => {
    const reset = () =>
      loop.jar.visit((req, res) => {
        loop.rounds.reset(req, res);
        return setCookies(res).length;
      });
    expect(reset()).toBe(0);
    loop.count('ada');
    expect([reset(), loop.jar.names]).toEqual([1, []]);
  });
});

test('a grant that was not found is remembered', ({ loop }) => {
  const hasLost = () => loop.rounds.hasLost(loop.jar.request());
  expect(hasLost()).toBe(false);
  loop.count('ada');
  expect(hasLost()).toBe(false);
  loop.comeBack('none');
  expect(hasLost()).toBe(false);
  loop.comeBack('lost');
  expect(hasLost()).toBe(true);
});

describe('leadsToLogin', () => {
  test('knows the paths at which logins have begun, as routers compare them', ({ loop }) => {
    const { rounds } = loop;
    rounds.rememberRoute(requestOf({}, { url: '/Login/?x=1' }));
    rounds.rememberRoute(requestOf({}, { url: '/in', originalUrl: '/auth/in' }));
    const found = ['/login', '/LOGIN/#a', '/auth/in?b', '/in', '/login2', 'login', 7, undefined].filter((url) =>
      rounds.leadsToLogin(url),
    );
    expect(found).toEqual(['/login', '/LOGIN/#a', '/auth/in?b']);
  });

  test('knows fifty at most', ({ loop }) => {
    const paths = Array.from({ length: 51 }, (_, index) => `/login-${index}`);
    for (const url of paths) loop.rounds.rememberRoute(requestOf({}, { url }));
    expect(paths.filter((path) => loop.rounds.leadsToLogin(path))).toEqual(paths.slice(0, 50));
  });
});

const STRICT =
  'Its session cookie is SameSite=Strict, which browsers leave out when they come from the service: set sameSite to lax.';
const SECURE =
  "Its session cookie is secure, and express-session sets it only where it sees https: behind a proxy, set Express' trust proxy.";
test.for<[settings: object, cause: string]>([
  [{ sameSite: 'strict', secure: true }, STRICT],
  [{ sameSite: true }, STRICT],
  [{ sameSite: 'lax', secure: true }, SECURE],
  [{ secure: true }, SECURE],
  [{ sameSite: 'lax' }, LIKELY_CAUSES],
  [{}, LIKELY_CAUSES],
])('the session cookie with the settings %j tells the likely cause', async ([cookie, cause], { loop }) => {
  for (const _round of [1, 2]) loop.count(NO_ACCOUNT);
  const message = await loop.refuse(NO_ACCOUNT, { session: { cookie } });
  expect(message).toBe(told(2, `${WITHOUT_SESSION} ${cause}`));
});

test('a session cookie that the browser has twice is the likely cause', async ({ loop }) => {
  for (const _round of [1, 2]) loop.count(NO_ACCOUNT);
  const req = requestOf({ cookie: `${loop.jar.header}; sid=1; sid=2` }, { session: { cookie: { secure: true } } });
  const refusal = loop.rounds.refuseLoop(req, new ServerResponse(req), NO_ACCOUNT, {} as GrantManager);
  await expect(refusal).rejects.toThrow(`${WITHOUT_SESSION} The browser has two cookies named sid,`);
});
