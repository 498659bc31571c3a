import fc from 'fast-check';
import { test } from 'vitest';
import { BaseUrls } from '../../src/api/base-urls.js';
import { TokenResponseError } from '../../src/index.js';
import { asOrganizationDomain, organizationDomainOf, readClaims, subjectOf } from '../../src/oauth/claims.js';
import { threats } from '../support/threats.js';
import { holds } from './fuzz.js';
import { base64url, base64urlOfJson, hostileJson, hostileText } from './hostile.js';

const label = fc.oneof(
  hostileText,
  fc.anything(),
  fc.stringMatching(/^[a-z0-9-]{1,70}$/),
  fc.stringMatching(/^xn--[a-z0-9-]{0,20}$/),
);
const bases = new BaseUrls({
  baseUrl: 'https://api.example.com',
  enterpriseBaseUrl: 'https://{domain}.api.example.com/x',
});

/** The domain, or `undefined` for one that was refused as it should be. */
function domainOf(find: () => string | undefined): string | undefined {
  try {
    return find();
  } catch (error) {
    if (error instanceof TokenResponseError && error.code === 'ERR_ORGANIZATION_DOMAIN') return undefined;
    throw error;
  }
}

test('every accepted domain leads to a host directly below the host of the template', threats(27), async () => {
  await holds('organization domains', 0.1, [label], (value) => {
    const domain = domainOf(() => asOrganizationDomain(value));
    if (domain === undefined) return;
    const { origin, url, prefix } = bases.of({ organizationDomain: domain });
    if (origin !== `https://${domain}.api.example.com` || url !== `${origin}/x/api/v2` || prefix !== '/x/api/v2') {
      throw new Error('another host');
    }
    if (!/^[a-z0-9-]{1,63}$/.test(domain)) throw new Error('no label');
  });
});

test('any token is read without an error, with or without claims', threats(28), async () => {
  const payload = hostileJson(['sub', 'domain', 'exp', 'iat', 'aud']);
  const part = fc.oneof(hostileText, hostileText.map(base64url), payload.map(base64urlOfJson));
  const token = fc.array(part, { minLength: 1, maxLength: 5 }).map((parts) => parts.join('.'));
  const signed = payload.map((value) => `${base64url('{"alg":"none"}')}.${base64urlOfJson(value)}.x`);
  await holds('access tokens and their claims', 0.1, [fc.oneof(token, signed)], (text) => {
    const claims = readClaims(text);
    const subject = subjectOf(claims);
    if (subject !== undefined && subject === '') throw new Error('an empty subject');
    domainOf(() => organizationDomainOf(claims, undefined));
    JSON.stringify(claims);
  });
});
