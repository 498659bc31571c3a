import { expect, test } from 'vitest';
import { lostCookieCause } from '../../src/advice/session-cookie.js';
import { cookieAttributes } from '../../src/session/cookies.js';
import { cookieSettingsOf } from '../../src/session/session.js';
import { Visit } from '../../src/session/visit.js';
import { requestOf } from './fixture.js';

const PARTITION =
  "Set cookie.sameSite to 'none', cookie.secure and cookie.partitioned to true (express-session 1.18 or newer), and give the cookie a name that it did not have before.";
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
    const sameSite = forFrames ? 'None; Secure' : 'Lax';
    expect(cookieSettingsOf(req)).toEqual(settings);
    expect(cookieAttributes(req, false)).toBe(`; Path=/; HttpOnly; SameSite=${sameSite}`);
  },
);
