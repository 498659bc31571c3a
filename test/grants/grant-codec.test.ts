import { describe, expect, it } from 'vitest';
import { GrantCodec } from '../../src/grants/grant-codec.js';
import { Secret } from '../../src/redaction.js';
import { grantOf } from '../refresh/fixture.js';

const key = (name: string) => new Secret(`${name} is long enough to be a key`);
const grant = grantOf('a', { organizationDomain: 'acme', subject: '7', refreshes: 3 });
const plain = (content: unknown) => ({
  version: 1,
  expiresAt: 2,
  sealed: Buffer.from(JSON.stringify(content)).toString('base64url'),
});

describe.each([
  ['without keys', []],
  ['with keys', [key('one')]],
])('a record %s', (_how, keys) => {
  const records = new GrantCodec(keys);

  it('gives back the grant that was written', async () => {
    for (const one of [grant, grantOf('b', { refreshToken: undefined })]) {
      expect(await records.read('id', await records.write('id', one))).toEqual(one);
    }
  });

  it('is JSON, and shows no token as it is', async () => {
    const record = await records.write('id', grant);
    expect(JSON.parse(JSON.stringify(record))).toEqual(record);
    expect(JSON.stringify(record)).not.toMatch(/access-a|refresh-a/);
    expect(record).toMatchObject({ version: grant.version, expiresAt: grant.expiresAt });
  });

  it.each([
    undefined,
    null,
    1,
    'text',
    [],
    {},
    { sealed: 'x' },
    { version: 1.5, sealed: 'x' },
    { version: 1, sealed: 7 },
    { version: 1, sealed: '' },
  ])('that is %j is none', async (record) => {
    expect(await records.read('id', record)).toBeUndefined();
  });
});

it('opens with any of the keys, and under its own id alone', async () => {
  const record = await new GrantCodec([key('old')]).write('id', grant);
  const both = new GrantCodec([key('new'), key('old')]);
  expect(await both.read('id', record)).toEqual(grant);
  expect(await both.read('another', record)).toBeUndefined();
  expect(await new GrantCodec([key('new')]).read('id', record)).toBeUndefined();
  expect(await new GrantCodec([key('old')]).read('id', await both.write('id', grant))).toBeUndefined();
});

it('THREATS 53: is none where a plain one stands in the place of a sealed one, or a sealed one in the place of a plain one', async () => {
  const sealed = new GrantCodec([key('one')]);
  const open = new GrantCodec([]);
  expect(await sealed.read('id', await open.write('id', grant))).toBeUndefined();
  expect(await open.read('id', await sealed.write('id', grant))).toBeUndefined();
});

it.each([
  { accessToken: 'with space' },
  { accessToken: 'a\r\nb' },
  { accessToken: 7 },
  { refreshToken: 7 },
  { subject: {} },
  { expiresAt: 'soon' },
  { expiresAt: -1 },
  { lifetimeMs: null },
  { refreshes: undefined },
  { organizationDomain: 'evil.example' },
  { organizationDomain: 'a/b' },
])('THREATS 29: is none after it was edited by hand to %j', async (change) => {
  const { version: _version, ...content } = grant;
  const records = new GrantCodec([]);
  expect(await records.read('id', plain(content))).toBeDefined();
  expect(await records.read('id', plain({ ...content, ...change }))).toBeUndefined();
});
