import { expect, test, vi } from 'vitest';
import { wrong } from '../../src/checks.js';
import { TokenError } from '../../src/errors.js';
import type { ApplicationGrant } from '../../src/oauth/token-endpoint.js';
import { askForParameters } from '../../src/refresh/application-grants.js';
import { stopTime } from '../support/stop-time.js';

const ask = (applicationGrant: unknown) => askForParameters(applicationGrant as ApplicationGrant, 'id', 20);

const EXPECTED =
  'applicationGrant: expected the parameters of a token request, texts and numbers, among them grant_type, or undefined for the grant of a user, got ';

test.for<[given: unknown, parameters: unknown]>([
  [undefined, undefined],
  [{ grant_type: 'a' }, { grant_type: 'a' }],
  [
    { b: '', grant_type: 'a', c: 0, d: undefined, e: null },
    { grant_type: 'a', b: '', c: 0 },
  ],
])('the application may give %j', async ([given, parameters]) => {
  expect(await ask(() => given)).toEqual(parameters);
  expect(await ask(async () => given)).toStrictEqual(parameters);
});

test('the application is asked with the id of the grant', async () => {
  expect(await ask((id: string) => ({ grant_type: id }))).toEqual({ grant_type: 'id' });
});

test.for<[given: unknown, found: string]>([
  ['text', 'string'],
  [null, 'null'],
  [['grant_type', 'a'], 'an array'],
  [{ scope: 'a' }, 'none with a grant_type'],
  [{ grant_type: '' }, 'none with a grant_type'],
  [{ grant_type: 7 }, 'none with a grant_type'],
  [{ grant_type: null }, 'none with a grant_type'],
  [{ grant_type: 'a', client_id: 'b' }, 'client_id, which is added from the options of the strategy'],
  [{ grant_type: 'a', client_secret: 'b' }, 'client_secret, which is added from the options of the strategy'],
  [{ grant_type: 'a', b: {} }, 'object for b'],
  [{ grant_type: 'a', b: true }, 'boolean for b'],
  [{ grant_type: 'a', b: Number.NaN }, 'number for b'],
])('parameters that are %j are an error of the option', async ([given, found]) => {
  await expect(ask(() => given)).rejects.toMatchObject({
    name: 'ConfigurationError',
    option: 'applicationGrant',
    message: EXPECTED + found,
  });
});

const THREW = 'applicationGrant: the function threw instead of returning parameters';

test.for<[what: string, error: Error, message: string, cause: object | undefined]>([
  ['any error', new Error('down'), THREW, { message: 'down' }],
  ['an error of another option', wrong('callbackURL', 'bad'), THREW, { message: 'callbackURL: bad' }],
  ['an error of the option', wrong('applicationGrant', 'bad'), 'applicationGrant: bad', undefined],
  ['an error of the service', new TokenError('no', { error: 'a' }), THREW, { message: 'no' }],
])('a function that throws %s is an error of the option', async ([, error, message, cause]) => {
  const thrower = () => {
    throw error;
  };
  for (const applicationGrant of [thrower, async () => thrower()])
    await expect(ask(applicationGrant)).rejects.toMatchObject({
      name: 'ConfigurationError',
      option: 'applicationGrant',
      message,
      ...(cause ? { cause } : {}),
    });
});

test('a function that does not answer in time is an error of the option', async () => {
  stopTime();
  const asked = ask(() => new Promise(() => {}));
  const failed = expect(asked).rejects.toMatchObject({
    name: 'ConfigurationError',
    option: 'applicationGrant',
    message: 'applicationGrant: expected a result within the timeout of 20 ms, got none',
  });
  await vi.advanceTimersByTimeAsync(20);
  await failed;
});
