import { IncomingMessage, ServerResponse, validateHeaderValue } from 'node:http';
import { Socket } from 'node:net';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { PendingLogins } from '../../src/login/pending-logins.js';
import { Secret } from '../../src/redaction.js';
import { Visit } from '../../src/session/visit.js';
import { threats } from '../support/threats.js';
import { holds } from './fuzz.js';
import { hostileText } from './hostile.js';

const settings = {
  name: 'oauth-app',
  callbackURL: 'https://app.example/usual',
  clientSecret: [new Secret('canary of the client secret')] as const,
  clock: () => 1_700_000_000_000,
  pkce: true,
};
const logins = new PendingLogins(settings, 'service');
const REDIRECT = {
  redirectUri: 'https://app.example/callback',
  returnTo: '/projects',
  isConnection: false,
  isSilent: false,
  userMark: '',
};

function requestWith(cookie: string): IncomingMessage {
  const req = new IncomingMessage(new Socket());
  req.headers.cookie = cookie;
  return req;
}

/** As Node hands the header over: Latin-1 without control characters. */
const cookieHeader = hostileText.map((text) => text.replaceAll(/[^\t\x20-\x7e\x80-\xff]/g, ''));
const ownName = fc.constantFrom('oauth-app.login.', '__Host-oauth-app.login.', 'oauth-app.return-to', '__proto__', '');
const cookies = fc
  .array(fc.tuple(ownName, cookieHeader, cookieHeader), { maxLength: 15 })
  .map((all) => all.map(([start, name, value]) => `${start}${name}=${value}`).join('; '));

/** Begins a login in a browser with these cookies. */
function begin(text: string) {
  const visit = new Visit(requestWith(text));
  const res = new ServerResponse(visit.req);
  const { state } = logins.begin(visit, res, REDIRECT, 0);
  return { state, cookies: [res.getHeader('set-cookie') ?? []].flat().map(String) };
}

test('a forged cookie under any name is not a pending login', threats(6), async () => {
  const begun = begin('');
  const [genuine = ''] = begun.cookies[0]?.split(';') ?? [];
  const name = genuine.slice(0, genuine.indexOf('='));
  const forged = fc.tuple(fc.nat(genuine.length), cookieHeader).map(([at, text]) => {
    const value = genuine.slice(0, Math.max(at, name.length + 1)) + text;
    return value === genuine ? '' : value;
  });
  const header = fc.oneof(
    cookies,
    forged,
    cookieHeader.map((text) => `${name}=${text}`),
  );
  const state = fc.oneof(fc.constant(begun.state), hostileText);
  await holds('cookies of pending logins', 0.04, [header, state], async (text, claimed) => {
    const found = await logins.find(new Visit(requestWith(text)), claimed);
    // The last character of a seal has bits that say nothing: cut or changed there, it is the same seal.
    if (found !== undefined && !(claimed === begun.state && text.startsWith(genuine.slice(0, -1)))) {
      throw new Error('a forged login was found');
    }
  });
  expect(await logins.find(new Visit(requestWith(genuine)), begun.state)).toMatchObject(REDIRECT);
});

test('a login begins with any cookies of a browser, and sets valid ones', async () => {
  await holds('browsers that begin a login with odd cookies', 0.01, [cookies], async (text) => {
    const { state, cookies: lines } = begin(text);
    if (!/^[\w-]{43}$/.test(state)) throw new Error('no state');
    for (const line of lines) {
      validateHeaderValue('set-cookie', line);
      if (!/^(__Host-)?oauth-app\.login\./.test(line)) throw new Error('a cookie that is not ours');
    }
  });
});
