import { expect, test } from 'vitest';
import { lostCookieCause, refuseUnpartitionedSession, refuseUnsetSession } from '../../src/advice/session-cookie.js';
import { ConfigurationError } from '../../src/errors.js';
import { cookieSettingsOf, isForFrames } from '../../src/session/session.js';
import { Visit } from '../../src/session/visit.js';
import { overTls, requestOf } from './fixture.js';

/** How a check of the session's cookie ends. */
function reasonOf(check: () => void): string | undefined {
  try {
    check();
    return undefined;
  } catch (error) {
    if (!(error instanceof ConfigurationError)) throw error;
    expect(error.code).toBe('ERR_SESSION_COOKIE');
    const [, reason] = /^The login would be lost: the session cookie (.*)$/.exec(error.message) ?? [];
    return reason ?? error.message;
  }
}

const secure = { session: { cookie: { secure: true } } };
test.for<[what: string, headers: object, added: object, isRefused: boolean]>([
  ['over plain http', {}, secure, true],
  ['over TLS', {}, { ...secure, ...overTls() }, false],
  ['over what is TLS in part', {}, { ...secure, socket: Object.assign(overTls().socket, { encrypted: 1 }) }, true],
  ['that Express takes for https', {}, { ...secure, secure: true }, false],
  ['that Express takes for half https', {}, { ...secure, secure: 1 }, true],
  ['that a proxy has got over https', { 'x-forwarded-proto': ' HTTPS, http' }, secure, false],
  ['that a proxy has got over https alone', { 'x-forwarded-proto': 'https' }, secure, false],
  ['that a proxy has got over http', { 'x-forwarded-proto': 'http, https' }, secure, true],
  ['that a proxy has got over another', { 'x-forwarded-proto': 'https2' }, secure, true],
  ['with a cookie for any connection', {}, { session: { cookie: { secure: 'auto' } } }, false],
  ['without a session', {}, {}, false],
])('a secure session cookie is refused where it would not be set: on a request %s', ([, headers, added, isRefused]) => {
  const reason =
    "is secure, and this request came over plain http, so that it is not set. Behind a proxy with https, set Express' trust proxy; without https, set cookie.secure to 'auto'.";
  const req = requestOf(headers as never, added);
  expect(reasonOf(() => refuseUnsetSession(req))).toBe(isRefused ? reason : undefined);
});

const PARTITION =
  "Set cookie.sameSite to 'none', cookie.secure and cookie.partitioned to true (express-session 1.18 or newer), and give the cookie a name that it did not have before.";
const foreignFrame = { 'sec-fetch-dest': 'iframe', 'sec-fetch-site': 'cross-site' };
const partitioned = { sameSite: 'none', secure: true, partitioned: true };
test.for<[cookie: object, headers: object, added: object, isRefused: boolean]>([
  [partitioned, foreignFrame, overTls(), false],
  [{ ...partitioned, sameSite: 'None' }, foreignFrame, overTls(), false],
  [{ ...partitioned, partitioned: false }, foreignFrame, overTls(), true],
  [{ ...partitioned, partitioned: 1 }, foreignFrame, overTls(), true],
  [{ ...partitioned, sameSite: 'lax' }, foreignFrame, overTls(), true],
  [{ ...partitioned, secure: false }, foreignFrame, overTls(), true],
  [{ ...partitioned, secure: false }, foreignFrame, {}, false],
  [{ sameSite: 'none', secure: true }, { ...foreignFrame, 'sec-fetch-site': 'same-origin' }, overTls(), false],
  [{ sameSite: 'none', secure: true }, {}, overTls(), false],
])(
  'a session cookie with the settings %j is refused in a frame of another site, unless it stays there: %j',
  ([cookie, headers, added, isRefused]) => {
    const req = requestOf(headers as never, { session: { cookie }, ...added });
    const reason = `is not Partitioned, which a login in a frame of another site needs: browsers block other cookies there, and where they do not, a foreign page could log the user's own tabs in. ${PARTITION}`;
    expect(reasonOf(() => refuseUnpartitionedSession(new Visit(req)))).toBe(isRefused ? reason : undefined);
  },
);

const twins = (name: string) =>
  `The browser has two cookies named ${name}, and sends the older one first: it was set before its attributes changed, such as Partitioned, domain or path. Give the session cookie another name.`;
const framed = (blocked: string) => `The application is in a frame, ${blocked}. ${PARTITION}`;
const mayBlock = framed('where browsers may block cookies');
const blocks = framed('where this browser blocks third-party cookies');
test.for<[cookie: string | undefined, headers: object, cause: string | undefined]>([
  [undefined, {}, undefined],
  ['a=1; b=2', {}, undefined],
  ['sid=1; a=2;  sid =3', {}, twins('sid')],
  ['a=1;sid=1; sid=2; a=2', {}, twins('sid')],
  [' __Host-a.%b=1; __Host-a.%b=2', {}, twins('__Host-a.%b')],
  ['a; a', {}, undefined],
  ['=1; =1', {}, undefined],
  ['a b=1; a b=2', {}, undefined],
  [`${'a'.repeat(64)}=1; ${'a'.repeat(64)}=2`, {}, twins('a'.repeat(64))],
  [`${'a'.repeat(65)}=1; ${'a'.repeat(65)}=2`, {}, undefined],
  ['<b>=1; <b>=2', {}, undefined],
  ['sid<=1; sid<=2', {}, undefined],
  ['a=1; b', { 'sec-fetch-dest': 'iframe' }, mayBlock],
  ['sid=1; sid=2', { 'sec-fetch-dest': 'iframe' }, twins('sid')],
  [undefined, { 'sec-fetch-dest': 'iframe', 'sec-fetch-storage-access': 'active' }, mayBlock],
  [undefined, { 'sec-fetch-dest': 'iframe', 'sec-fetch-storage-access': 'none' }, blocks],
  [undefined, { 'sec-fetch-dest': 'frame', 'sec-fetch-storage-access': 'inactive' }, blocks],
  [undefined, { 'sec-fetch-storage-access': 'none' }, undefined],
])('the cause of a lost session is seen in the cookies %j and the headers %j', ([cookie, headers, cause]) => {
  expect(lostCookieCause(new Visit(requestOf({ ...(cookie === undefined ? {} : { cookie }), ...headers })))).toBe(
    cause,
  );
});

const none = { sameSite: 'none' };
test.for<[what: string, added: object, settings: object, isForFrames: boolean]>([
  ['of express-session', { session: { cookie: none }, sessionOptions: {} }, none, true],
  ['of cookie-session', { session: {}, sessionOptions: none }, none, true],
  ['in capitals', { session: { cookie: { sameSite: 'NONE' } } }, { sameSite: 'NONE' }, true],
  ['for the own site', { session: { cookie: { sameSite: 'lax' } } }, { sameSite: 'lax' }, false],
  ['that are a text', { session: { cookie: 'none' } }, {}, false],
  ['that are null', { session: {}, sessionOptions: null }, {}, false],
  ['that are missing', {}, {}, false],
])(
  'the settings of a session cookie %s are found, and whether they are for frames',
  ([, added, settings, forFrames]) => {
    const req = requestOf({}, added);
    expect([cookieSettingsOf(req), isForFrames(req)]).toEqual([settings, forFrames]);
  },
);
