import { type IncomingHttpHeaders, type IncomingMessage, ServerResponse } from 'node:http';
import { expect, test, vi } from 'vitest';
import { ConfigurationError } from '../../src/errors.js';
import { routedPathOf } from '../../src/login/begin-login.js';
import { refuseFramework } from '../../src/middleware/api-client.js';
import { locationOf, redirect } from '../../src/session/return-to.js';
import { callOnce, settle } from '../../src/session/session.js';
import { frameworkError, isSameOrigin, Visit } from '../../src/session/visit.js';
import { overTls, requestOf, throughProxy, turns } from './fixture.js';

test.for<[prefix: string | undefined, url: string, added?: object]>([
  ['/prefix', '/prefix/a?b'],
  ['/one/two/', '/one/two/a?b'],
  ['/~a.b_c-1', '/~a.b_c-1/a?b'],
  [' /first , /second', '/first/a?b'],
  ['prefix', '/a?b'],
  ['http:/prefix', '/a?b'],
  ['/a b', '/a?b'],
  ['', '/a?b'],
  [undefined, '/a?b'],
  ['/prefix', '/a?b', { socket: overTls().socket }],
  ['/prefix', '/a?b', { app: undefined }],
  ['/prefix', '/a?b', { app: {} }],
  ['/prefix', '/a?b', { app: { get: () => true } }],
])('behind the prefix %j the browser has requested %s', ([prefix, url, added]) => {
  const headers = prefix === undefined ? {} : { 'x-forwarded-prefix': prefix };
  expect(new Visit(requestOf(headers, { url: '/a?b', ...throughProxy(), ...added })).browserUrl).toBe(url);
});

test.for([
  ['/Callback/', '/auth/login', '/callback'],
  ['callback?x=1', '/auth/login?y=2', '/auth/callback'],
  ['../callback', '/auth/in/login', '/auth/callback'],
  ['https://app.example/callback', '/auth/login', '/callback'],
  ['callback', 'http://other.example/auth/login', '/callback'],
] as const)('the callback URL %s of the request %s is routed at %s', ([callbackURL, url, path]) => {
  expect(routedPathOf(callbackURL, url)).toBe(path);
});

const script = { 'x-requested-with': 'XMLHttpRequest', host: 'app.example' };
test.for<[headers: IncomingHttpHeaders, isOwn: boolean]>([
  [{ 'sec-fetch-site': 'same-origin' }, true],
  [{ 'sec-fetch-site': 'same-site' }, false],
  [{ ...script, 'sec-fetch-site': 'cross-site' }, false],
  [{ ...script, 'sec-fetch-site': '' }, false],
  [{}, false],
  [{ ...script, 'x-requested-with': '' }, false],
  [script, true],
  [{ ...script, origin: 'http://app.example' }, true],
  [{ ...script, origin: 'http://APP.example:80' }, true],
  [{ ...script, origin: 'https://app.example', host: 'app.example:443' }, true],
  [{ ...script, origin: 'https://other.example' }, false],
  [{ ...script, origin: 'https://app.example:444' }, false],
  [{ ...script, origin: 'null' }, false],
  [{ ...script, origin: 'http://' }, false],
  [{ ...script, origin: 'http://app.example', host: 'no host' }, false],
  [{ ...script, origin: 'http://undefined', host: 'no host' }, false],
  [{ ...script, origin: 'data:,' }, false],
])('a request with the headers %j is of a page of this origin: %s', ([headers, isOwn]) => {
  expect(isSameOrigin(headers, new Visit(requestOf(headers as never)).host)).toBe(isOwn);
});

test.for([
  ['/a?b=c#d!~', '/a?b=c#d!~'],
  ['/a b', '/a%20b'],
  ['/\u00e4\u{1f600}/\u00e4', '/%C3%A4%F0%9F%98%80/%C3%A4'],
  ['/\u007f\r\n', '/%7F%0D%0A'],
  ['/\ud800', '/%EF%BF%BD'],
] as const)('a redirect to %j has the location %s, and no body', ([url, location]) => {
  expect(locationOf(url)).toBe(location);
  const res = new ServerResponse(requestOf());
  redirect(res, url);
  expect({ ...res.getHeaders() }).toEqual({ location, 'content-length': '0' });
  expect([res.statusCode, res.writableEnded]).toEqual([302, true]);
});

const methods = { appendHeader: () => {}, setHeader: () => {}, end: () => {} };
const EXPRESS_DOUBLE = 'A double in a unit test needs these methods, as those of node-mocks-http have.';
const KOA = `In Koa use koa-connect, and mount express-session, passport and this package with it as in Connect: koa-passport does not work. ${EXPRESS_DOUBLE}`;
const FASTIFY =
  'Fastify: @fastify/passport hands over neither request nor response of Node. Use @fastify/express, and mount express-session, passport and this package there as in Express.';

test.for<[what: string, req: unknown, res: unknown, message: string | undefined]>([
  ['a response with the methods that are needed', requestOf(), methods, undefined],
  ['a request of Fastify', { raw: requestOf() }, methods, FASTIFY],
  ['a request of Fastify with a response of Node', { raw: requestOf() }, new ServerResponse(requestOf()), FASTIFY],
  ['no request', null, methods, undefined],
  ['a request that is a text', 'raw', methods, undefined],
  ['no response', requestOf(), undefined, `Expected a response of Node, got undefined. ${KOA}`],
  ['a response that is null', requestOf(), null, `Expected a response of Node, got null. ${KOA}`],
  [
    'a response without two methods',
    requestOf(),
    { end: methods.end, setHeader: 'x' },
    `Expected a response of Node, got an object without appendHeader, setHeader. ${KOA}`,
  ],
  [
    'a response without one',
    requestOf(),
    { ...methods, end: undefined },
    `Expected a response of Node, got an object without end. ${KOA}`,
  ],
])('a framework is refused by what it hands over: %s', ([, req, res, message]) => {
  const error = message && new ConfigurationError(message, { code: 'ERR_FRAMEWORK' });
  expect(frameworkError(req as IncomingMessage, res)).toEqual(error || undefined);
  expect(frameworkError(req as IncomingMessage, res)?.code).toBe(message && 'ERR_FRAMEWORK');
  const next = vi.fn();
  expect(refuseFramework(req as IncomingMessage, res, next, 'oauth-app')).toBe(message !== undefined);
  const told = expect.objectContaining({ message, code: 'ERR_FRAMEWORK', strategy: 'oauth-app' });
  expect(next.mock.calls).toEqual(message === undefined ? [] : [[told]]);
  if (message === undefined) return;
  expect(() => refuseFramework(req as IncomingMessage, res, undefined, 'oauth-app')).toThrow(told);
});

const fault = new Error('of the method');

/** As promises of libraries are: no instance of Promise. */
class OtherPromise {
  // biome-ignore lint/suspicious/noThenProperty: it is what the test is about
  readonly then = (resolve: () => void) => resolve();
}

type Once = (error?: unknown) => void;

/** Fails later, and returns this value at once. */
const later = (value: unknown) => (done: Once) => {
  setImmediate(done, fault);
  return value;
};

test.for<[what: string, call: (done: Once) => unknown, error?: unknown]>([
  ['calls back', (done) => done()],
  ['calls back with null', (done) => done(null)],
  ['calls back with an error', (done) => done(fault), fault],
  ['calls back and goes on to fail', (done) => [done(), done(fault)]],
  ['resolves', async () => 'a value'],
  ['resolves by a promise of a library', () => new OtherPromise()],
  ['rejects', () => Promise.reject(fault), fault],
  ['rejects without a reason', () => Promise.reject(), new Error('A promise was rejected without a reason')],
  ['calls back and rejects later', (done) => [done(), Promise.reject(fault)][1]],
  ['fails later and returns null', later(null), fault],
  ['fails later and returns an object', later({}), fault],
  ['fails later and returns a text', later('then'), fault],
])('of a method that %s the first outcome counts, once', async ([, call, error]) => {
  const done = vi.fn();
  let returned: unknown;
  const called = (once: Once) => {
    returned = call(once);
    return returned;
  };
  expect(callOnce(called, done)).toBe(returned);
  const settled = settle(call).then(
    () => 'resolved',
    (reason: unknown) => reason,
  );
  expect(await Promise.race([settled, turns()])).toEqual(error ?? 'resolved');
  await turns();
  expect(done.mock.calls.map(([given]) => given ?? undefined)).toEqual([error]);
});

test('what a method throws is what it is settled with', async () => {
  const throwing = () => {
    throw fault;
  };
  await expect(settle(throwing)).rejects.toBe(fault);
});
