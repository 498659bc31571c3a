import { describe, expect, it } from 'vitest';
import { Sealer } from '../../src/grants/grant-sealer.js';
import { Secret } from '../../src/redaction.js';

const [first, second] = [new Secret('first key'), new Secret('second key')];
const sealer = new Sealer('grant', [first]);

describe('a sealed text', () => {
  it('opens in its own context, and shows nothing of itself', async () => {
    const sealed = await sealer.seal('id', 'the text – ünï');
    expect(await sealer.open('id', sealed)).toBe('the text – ünï');
    expect(Buffer.from(sealed, 'base64url').toString('latin1')).not.toContain('text');
  });

  it('is another one each time', async () => {
    expect(await sealer.seal('id', 'text')).not.toBe(await sealer.seal('id', 'text'));
  });

  it('is a compact JWE with dir and A256GCM', async () => {
    const [header = '', key] = (await sealer.seal('id', 'text')).split('.');
    expect(JSON.parse(Buffer.from(header, 'base64url').toString())).toEqual({
      alg: 'dir',
      enc: 'A256GCM',
      kid: expect.stringMatching(/^[\w-]{8}$/),
    });
    expect(key).toBe('');
  });

  it('THREATS 53: does not open in another context', async () => {
    const sealed = await sealer.seal('id of Ada', 'text');
    for (const context of ['id of Ben', '', 'id of Ada ', 'id of Ada\n', 'ID OF ADA']) {
      expect(await sealer.open(context, sealed)).toBeUndefined();
    }
  });

  it('does not open for another purpose, even if purpose and context read the same together', async () => {
    const sealed = await new Sealer('a', [first]).seal('b\nc', 'text');
    expect(await new Sealer('b', [first]).open('b\nc', sealed)).toBeUndefined();
    expect(await new Sealer('a', [second]).open('b\nc', sealed)).toBeUndefined();
  });

  it('THREATS 53: opens with any of the keys, and not with an unknown one', async () => {
    const sealed = await sealer.seal('id', 'text');
    expect(await new Sealer('grant', [second, first]).open('id', sealed)).toBe('text');
    expect(await new Sealer('grant', [second]).open('id', sealed)).toBeUndefined();
  });

  it('is made with the first key', async () => {
    const sealed = await new Sealer('grant', [second, first]).seal('id', 'text');
    expect(await new Sealer('grant', [second]).open('id', sealed)).toBe('text');
    expect(await sealer.open('id', sealed)).toBeUndefined();
  });

  it('THREATS 53: does not open when any of it was changed or cut', async () => {
    const sealed = await sealer.seal('id', 'some text');
    for (let length = 0; length < sealed.length; length += 7) {
      expect(await sealer.open('id', sealed.slice(0, length))).toBeUndefined();
    }
    const parts = sealed.split('.');
    for (const index of parts.keys()) {
      const changed = parts.map((part, at) =>
        at === index ? `${part.startsWith('A') ? 'B' : 'A'}${part.slice(1)}` : part,
      );
      expect(await sealer.open('id', changed.join('.'))).toBeUndefined();
    }
  });

  it.each([
    '',
    'plain text',
    '{"accessToken":"x"}',
    '....',
    'a.b.c.d.e',
    'eyJhbGciOiJub25lIn0.e30.',
    `${Buffer.from('{"alg":"dir","enc":"A256GCM","kid":"__proto__"}').toString('base64url')}..a.b.c`,
    `${Buffer.from('{"alg":"dir","enc":"A256GCM","kid":null}').toString('base64url')}..a.b.c`,
  ])('is not made by hand: %j', async (forged) => {
    expect(await sealer.open('id', forged)).toBeUndefined();
  });

  it('with another algorithm or compression in its header does not open', async () => {
    const [header = '', ...rest] = (await sealer.seal('id', 'text')).split('.');
    const known = JSON.parse(Buffer.from(header, 'base64url').toString());
    for (const change of [
      { alg: 'none' },
      { alg: 'PBES2-HS256+A128KW', p2c: 1e9 },
      { enc: 'A128CBC-HS256' },
      { zip: 'DEF' },
    ]) {
      const forged = Buffer.from(JSON.stringify({ ...known, ...change })).toString('base64url');
      expect(await sealer.open('id', [forged, ...rest].join('.'))).toBeUndefined();
    }
  });
});

it('a sealer without keys does not seal in the open', async () => {
  await expect(new Sealer('grant', []).seal('id', 'text')).rejects.toThrow(RangeError);
});
