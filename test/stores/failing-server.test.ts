import { inspect } from 'node:util';
import type { TokenStore } from 'passport-oauth-app';
import { mysqlTokenStore } from 'passport-oauth-app/mysql';
import { postgresTokenStore } from 'passport-oauth-app/postgres';
import { redisTokenStore } from 'passport-oauth-app/redis';
import { afterEach, describe, expect, test, vi } from 'vitest';

type Command = (...args: unknown[]) => Promise<never>;

const stores: [string, (command: Command) => TokenStore][] = [
  ['Redis', (sendCommand) => redisTokenStore({ isOpen: true, sendCommand })],
  ['PostgreSQL', (query) => postgresTokenStore({ query })],
  ['MySQL', (query) => mysqlTokenStore({ query, execute: query })],
];

afterEach(() => void vi.useRealTimers());

describe.each(stores)('a token store over %s', (name, open) => {
  test('gives up a command that is not answered within five seconds', async () => {
    vi.useFakeTimers();
    const reading = Promise.resolve(open(() => new Promise(() => undefined)).get('id')).catch(
      (error: unknown) => error,
    );
    await vi.advanceTimersByTimeAsync(5000);
    expect(await reading).toMatchObject({
      name: 'TokenStoreError',
      message: `${name} did not read a grant within 5000 ms.`,
    });
  });

  test('rejects with errors that quote no secret, and shows none when it is inspected', async () => {
    const store = open((...args) =>
      Promise.reject(Object.assign(new Error(`syntax error near ${JSON.stringify(args)}`), { args })),
    );
    const grant = { version: 1, expiresAt: 2, sealed: 'eyJhbGciOiJkaXIifQ.secret-secret-secret' };
    const error = await Promise.resolve(store.set('id', grant)).catch((fault: unknown) => fault);
    expect(error).toMatchObject({ name: 'TokenStoreError', code: 'ERR_TOKEN_STORE', status: 503 });
    expect(inspect([error, store], { depth: 10, showHidden: true })).not.toContain('secret-secret');
  });
});
