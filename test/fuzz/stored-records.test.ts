import fc from 'fast-check';
import { test } from 'vitest';
import { GrantCodec } from '../../src/grants/grant.js';
import { TokenResponseError } from '../../src/index.js';
import { Secret } from '../../src/redaction.js';
import { grantOf } from '../refresh/fixture.js';
import { threats } from '../support/threats.js';
import { holds } from './fuzz.js';
import { asOwnProperties, base64urlOfJson, hostileJson, hostileText } from './hostile.js';

const plain = new GrantCodec([]);
const sealed = new GrantCodec([new Secret('canary of the encryption key')]);
const names = [
  ...['accessToken', 'refreshToken', 'expiresAt', 'lifetimeMs', 'organizationDomain', 'subject', 'generation'],
  ...['lineage', 'ended', 'retryAt', 'scope', 'createdAt', 'refreshedAt', 'refreshTokenExpiresAt', 'id'],
];
const known: Readonly<Record<string, unknown>> = {
  id: 'id',
  ...grantOf('known', { organizationDomain: 'acme', subject: '1' }),
};

/** A record of a sound grant in which some fields were changed by hand. */
const edited = fc
  .array(fc.tuple(fc.constantFrom(...names), hostileJson(names)), { maxLength: 3 })
  .map((changes) => asOwnProperties([...Object.entries(known), ...changes]));
const content = fc.oneof(edited, hostileJson(names)).map(base64urlOfJson);
const version = fc.oneof(fc.nat(), fc.anything());
const record = fc.oneof(
  { arbitrary: fc.record({ version, expiresAt: fc.anything(), sealed: fc.oneof(content, hostileText) }), weight: 9 },
  { arbitrary: fc.anything(), weight: 1 },
);

async function readSoundly(records: GrantCodec, value: unknown): Promise<void> {
  try {
    const grant = await records.decode('id', value);
    if (grant === undefined || 'ended' in grant) return;
    if (!/^[\x21-\x7e]+$/.test(grant.accessToken)) throw new Error('no token');
    if (grant.organizationDomain !== undefined && !/^[a-z0-9-]{1,63}$/.test(grant.organizationDomain))
      throw new Error('no label');
    if (grant.scope?.some((name) => typeof name !== 'string')) throw new Error('no scope');
    if (![grant.expiresAt, grant.lifetimeMs, grant.generation].every((count) => count >= 0))
      throw new Error('no times');
  } catch (error) {
    if (!(error instanceof TokenResponseError)) throw error;
  }
}

test('a stored record that is not sealed is a sound grant, none, or a typed error', threats(29), async () => {
  await holds('stored records', 0.05, [record], (value) => readSoundly(plain, value));
});

test('a sealed record opens unchanged for its own id, and in no other form', threats(53), async () => {
  const genuine = await sealed.encode('id', grantOf('sealed'));
  const change = fc.tuple(fc.nat(genuine.sealed.length - 1), fc.oneof(hostileText, fc.constantFrom('', 'A', '.', '_')));
  await holds('sealed records', 0.01, [change, fc.constantFrom('id', 'ID', 'other', '')], async ([at, text], id) => {
    const forged = genuine.sealed.slice(0, at) + text + genuine.sealed.slice(at + 1);
    const grant = await sealed.decode(id, { ...genuine, sealed: forged });
    if (grant !== undefined && (id !== 'id' || !isSameText(forged, genuine.sealed)))
      throw new Error('a forged record opened');
  });
  await holds('records that are not sealed, with keys set', 0.01, [record], async (value) => {
    if ((await sealed.decode('id', value)) !== undefined) throw new Error('an open record was taken for a sealed one');
  });
});

/** Whether two texts are the same base64url: the last character of a part has bits that say nothing. */
function isSameText(one: string, other: string): boolean {
  const bytes = (text: string) =>
    text
      .split('.')
      .map((part) => Buffer.from(part, 'base64url').toString('hex'))
      .join('.');
  return bytes(one) === bytes(other);
}
