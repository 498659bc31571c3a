import { expect, test } from 'vitest';
import { cookieAttributes } from '../../src/session/cookies.js';
import { cookieSettingsOf } from '../../src/session/session.js';
import { requestOf } from './fixture.js';

const none = { sameSite: 'none' };
test.for<[what: string, added: object, settings: object, isForFrames: boolean]>([
  ['of cookie-session', { session: {}, sessionOptions: none }, none, true],
  ['in capitals', { session: { cookie: { sameSite: 'NONE' } } }, { sameSite: 'NONE' }, true],
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
