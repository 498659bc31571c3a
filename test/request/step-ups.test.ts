import { ServerResponse } from 'node:http';
import { beforeEach, describe, expect, test } from 'vitest';
import { Secret } from '../../src/redaction.js';
import { CookieSeal } from '../../src/session/cookie-seal.js';
import { StepUps } from '../../src/step-up/step-ups.js';
import { TestClock } from '../support/test-clock.js';
import { Jar, overTls, requestOf, setCookies } from './fixture.js';

const NAME = 'oauth-app.step-up';
const seal = new CookieSeal('of this test', [new Secret('the secret')]);

let clock: TestClock;
let stepUps: StepUps;
let jar: Jar;
beforeEach(() => {
  clock = new TestClock();
  stepUps = new StepUps(NAME, seal, 'read, write read', clock.now);
  jar = new Jar();
});

test('the scopes of the strategy are known, each once', () => expect(stepUps.ownScope).toEqual(['read', 'write']));

describe('the scopes that a page asks for', () => {
  const ask = (page: string, scope: string[], grantId?: string) =>
    jar.visit((req, res) => stepUps.ask(req, res, page, scope, grantId));
  const take = (page: string, grantId?: string) => jar.visit((req, res) => stepUps.take(req, res, page, grantId));

  /** The lines of `Set-Cookie` of a login that leads back to the page. */
  const linesOf = (page: string) =>
    jar.visit((req, res) => {
      stepUps.take(req, res, page, undefined);
      return setCookies(res);
    });

  test('are for one login that leads back to it', () => {
    expect(ask('/a', ['tm', 'glossary'])).toBe(true);
    expect(ask('/b', ['project'])).toBe(true);
    expect(jar.names).toHaveLength(2);
    for (const name of jar.names) expect(name).toMatch(/^oauth-app\.step-up\.[\w-]{11}$/);
    expect(take('/c')).toBeUndefined();
    expect(linesOf('/c')).toEqual([]);
    expect(take('/a')).toBe('tm glossary');
    expect(take('/a')).toBeUndefined();
    expect(take('/b')).toBe('project');
    expect(jar.names).toEqual([]);
  });

  test.for<[asked: string | undefined, taken: string | undefined, isTheirs: boolean]>([
    ['1', '1', true],
    ['1', '2', false],
    ['1', undefined, false],
    [undefined, '1', false],
  ])('are those of the grant %s, and not of %s: %s', ([asked, taken, isTheirs]) => {
    ask('/a', ['tm'], asked);
    expect(take('/a', taken)).toBe(isTheirs ? 'tm' : undefined);
    expect(jar.names).toEqual([]);
  });

  test.for([
    [599, 'tm'],
    [600, undefined],
    [-661, undefined],
  ] as const)('count for ten minutes: after %d s', ([seconds, scope]) => {
    ask('/a', ['tm']);
    clock.advance(seconds);
    expect(take('/a')).toBe(scope);
  });

  test('are asked for three times without a login', () => {
    expect([1, 2, 3].map(() => ask('/a', ['tm']))).toEqual([true, true, true]);
    expect(ask('/b', ['tm'])).toBe(true);
    expect(ask('/a', ['tm'])).toBe(false);
    expect(jar.names).toHaveLength(1);
    expect(ask('/a', ['tm'])).toBe(true);
    expect(take('/a')).toBe('tm');
    expect([1, 2, 3, 4].map(() => ask('/a', ['tm']))).toEqual([true, true, true, false]);
  });

  test('are not asked for if the browser has no room for a cookie', () => {
    const req = requestOf({ cookie: `a=${'b'.repeat(7_790)}` });
    expect(stepUps.ask(req, new ServerResponse(req), '/a', ['tm'], undefined)).toBe(false);
  });

  test('are in a cookie for ten minutes, of its own host alone over TLS', () => {
    for (const [added, prefix] of [
      [{}, ''],
      [overTls(), '__Host-'],
    ] as const) {
      const req = requestOf({}, added);
      const res = new ServerResponse(req);
      stepUps.ask(req, res, '/a', ['tm'], '1');
      const line = new RegExp(`^${prefix}oauth-app\\.step-up\\.[\\w-]{11}=[\\w-]+; Max-Age=600; Path=/;`);
      expect(setCookies(res)).toEqual([expect.stringMatching(line)]);
    }
  });

  test('are not taken from a cookie that is planted or another page’s', () => {
    ask('/a', ['tm']);
    ask('/b', ['project']);
    const [a = '', b = ''] = jar.header?.split('; ') ?? [];
    const swapped = `${a.split('=')[0]}=${b.split('=')[1]}`;
    for (const cookie of [`${a.split('=')[0]}=planted`, `${a.split('=')[0]}=`, swapped, `__Host-${a}`]) {
      const req = requestOf({ cookie });
      expect(stepUps.take(req, new ServerResponse(req), '/a', undefined)).toBeUndefined();
    }
    const overHttps = requestOf({ cookie: a }, overTls());
    expect(stepUps.take(overHttps, new ServerResponse(overHttps), '/a', undefined)).toBeUndefined();
  });
});

describe('scopes that were refused', () => {
  const note = (scope: string[], headers: object = {}) =>
    jar.visit(
      (req, res) => {
        stepUps.noteRefused(req, res, scope);
        return setCookies(res);
      },
      jar.request(headers as never),
    );
  const isRefused = (scope: string[], headers: object = {}) =>
    jar.visit((req, res) => stepUps.isRefused(req, res, scope), jar.request(headers as never));
  const click = { 'sec-fetch-user': '?1', 'sec-fetch-site': 'same-origin' };

  test('are those of the last login', () => {
    expect(isRefused(['tm'])).toBe(false);
    expect(note(['tm', 'glossary'])).toEqual([
      expect.stringMatching(/^oauth-app\.step-up\.refused=[\w-]+; Max-Age=60;/),
    ]);
    expect(isRefused(['glossary'])).toBe(true);
    expect(isRefused(['project', 'tm'])).toBe(true);
    expect(isRefused(['project'])).toBe(false);
    expect(isRefused([])).toBe(false);
    note(['project']);
    expect(isRefused(['tm'])).toBe(false);
    expect(note([])).toEqual([expect.stringContaining('.refused=; Max-Age=0;')]);
    expect(isRefused(['project'])).toBe(false);
    expect(note([])).toEqual([]);
    jar.visit((req, res) => stepUps.ask(req, res, '/a', ['tm'], undefined));
    expect(note([])).toEqual([]);
  });

  test.for([
    [59, true],
    [60, false],
    [-121, false],
  ] as const)('count for a minute: after %d s', ([seconds, counts]) => {
    note(['tm']);
    clock.advance(seconds);
    expect(isRefused(['tm'])).toBe(counts);
  });

  test.for<[headers: object, isSo: boolean]>([
    [click, false],
    [{ ...click, 'sec-fetch-site': 'none' }, false],
    [{ ...click, 'sec-fetch-site': 'cross-site' }, true],
    [{ ...click, 'sec-fetch-site': 'same-site' }, true],
    [{ ...click, 'sec-fetch-user': undefined }, true],
    [{ 'sec-fetch-user': '?0', 'sec-fetch-site': 'none' }, true],
    [{}, true],
  ])('are asked for again after a click alone: with the headers %j they count %s', ([headers, isSo]) => {
    note(['tm']);
    expect(isRefused(['tm'], headers)).toBe(isSo);
    note(['tm'], { 'sec-fetch-site': 'cross-site' });
    expect(isRefused(['tm'], headers)).toBe(isSo);
  });

  test.for(['same-origin', 'none'])('of a callback that looks like a click (%s) count once all the same', (site) => {
    note(['tm'], { 'sec-fetch-site': site });
    clock.advance(30);
    expect(isRefused(['project'], click)).toBe(false);
    expect(isRefused(['tm'], click)).toBe(true);
    expect(isRefused(['tm'])).toBe(true);
    expect(isRefused(['tm'], click)).toBe(false);
    clock.advance(30);
    expect(isRefused(['tm'])).toBe(false);
  });
});
