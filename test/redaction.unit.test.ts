import { inspect } from 'node:util';
import { expect, test } from 'vitest';
import { safeCause, withoutSecrets } from '../src/redaction.js';
import { threats } from './support/threats.js';

const secret = 'eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0';

test('keeps name, code and message of an error', () => {
  const fault = Object.assign(new TypeError('connect ECONNREFUSED 127.0.0.1:443'), { code: 'ECONNREFUSED' });
  expect(safeCause(fault)).toMatchObject({ name: 'TypeError', code: 'ECONNREFUSED', message: fault.message });
});

test('keeps nothing that hangs on an error', () => {
  const fault = Object.assign(new Error('failed'), {
    request: { headers: { authorization: secret } },
    query: [secret],
  });
  fault.cause = new Error(secret);
  expect(inspect(safeCause(fault), { depth: 9, showHidden: true })).not.toContain('eyJ');
});

test('removes what may be a secret from any place of the message', () => {
  for (const text of [secret, `"${secret}"`, `Bearer ${secret}`, `invalid header: ${secret}\n`, `x=${secret}&y`]) {
    expect(safeCause(new Error(text)).message).not.toContain('eyJ');
  }
});

test('strikes out the longest of known secrets first: one may be the beginning of another', () => {
  expect(withoutSecrets('of key, key-two', ['key', 'key-two'])).toBe('of […], […]');
  expect(withoutSecrets('of beginning-1', ['beginning.end', 'beginning-1'])).toBe('of […]');
});

test('strikes out a secret that stands where the message is cut', threats(24), () => {
  for (let length = 280; length <= 300; length++) {
    const message = `${'word '.repeat(60).slice(0, length)} ${secret}`;
    expect(safeCause(new Error(message)).message).not.toContain('eyJ');
    expect(safeCause(new Error(message)).message.length).toBeLessThanOrEqual(300);
  }
});

test('says nothing of what JSON.parse choked on', () => {
  try {
    JSON.parse('{"access_token": "short", oops');
    expect.unreachable();
  } catch (error) {
    expect(inspect(safeCause(error))).not.toContain('short');
  }
});

test('takes no code or name that may be a text of the sender', () => {
  const fault = Object.assign(new Error('failed'), { code: 'a code with spaces', name: `<${secret}>` });
  const cause = safeCause(fault);
  expect(cause.name).toBe('Error');
  expect(cause).not.toHaveProperty('code');
});

test.each([[secret], [{ token: secret }], [null], [undefined], [7]])(
  'says of %j only what kind of thing was thrown',
  (fault) => {
    expect(safeCause(fault).message).toBe(`a ${typeof fault} was thrown`);
    expect(inspect(safeCause(fault), { showHidden: true })).not.toContain('eyJ');
  },
);
