import fc from 'fast-check';
import { test } from 'vitest';
import { OAuthAppError } from '../../src/index.js';
import { readTokenResponse } from '../../src/oauth/token-response.js';
import { shownOf } from '../security/shown.js';
import { threats } from '../support/threats.js';
import { holds } from './fuzz.js';
import { hostileText } from './hostile.js';
import { SECRETS, TOKEN, tokenBody, tokenStatus } from './token-body.js';

test(
  'an answer of the token endpoint is a sound token set or a typed error, which shows nothing that was sent',
  threats(30),
  async () => {
    const context = {
      organizationDomain: ({ domain }: Readonly<Record<string, unknown>>) => domain,
      now: 0,
      secrets: SECRETS,
    };
    const retryTimes = fc.option(hostileText, { nil: undefined });
    await holds('token answers', 0.1, [tokenStatus, tokenBody, retryTimes], (code, text, retryAfter) => {
      try {
        const headers = retryAfter === undefined ? {} : { 'retry-after': retryAfter };
        const tokens = readTokenResponse({ status: code, headers, body: Buffer.from(text) }, context);
        if (code > 299 || !/^[\x21-\x7e]{1,16384}$/.test(tokens.accessToken)) throw new Error('no token');
        if (!(tokens.lifetimeMs >= 1000 && tokens.lifetimeMs <= (tokens.refreshToken ? 86_400_000 : 3_153_600_000_000)))
          throw new Error('no lifetime');
        if (tokens.refreshToken === '') throw new Error('an empty refresh token');
      } catch (error) {
        if (!(error instanceof OAuthAppError)) throw error;
        const shown = shownOf(error);
        for (const hidden of [...SECRETS, TOKEN]) if (shown.includes(hidden)) throw new Error(`shows ${hidden}`);
      }
    });
  },
);
