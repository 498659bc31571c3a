// Each mistake is one that the compiler finds.
import { startEmulator } from '../../../src/emulator/index.js';
import {
  apiClient,
  requireAuthorization,
  Strategy,
  type StrategyOptions,
  type TokenStore,
} from '../../../src/index.js';
import { redisTokenStore } from '../../../src/redis/redis-token-store.js';

declare const options: StrategyOptions;
declare const strategy: Strategy;

// @ts-expect-error: an option is missing
new Strategy({ authUrl: '', baseUrl: '', clientID: '', clientSecret: '', callbackURL: '' });
// @ts-expect-error: the option is called clientID
new Strategy({ ...options, clientId: 'id' });
// @ts-expect-error: seconds are a number
new Strategy({ ...options, refresh: { ahead: '300' } });
// @ts-expect-error: only false turns the cache off
new Strategy({ ...options, cache: true });
// @ts-expect-error: a token need not say whose it is
new Strategy(options, (_accessToken, _refreshToken, profile, done) => done(null, profile.id.length));
// @ts-expect-error: verify is a function
new Strategy(options, {});
// @ts-expect-error: the strategy is what is needed
apiClient(options);
// @ts-expect-error: a path, not a flag
requireAuthorization({ login: true });
// @ts-expect-error: the client is needed
redisTokenStore();
// @ts-expect-error: there is no such endpoint
startEmulator().then((service) => service.fail('tokens'));

// @ts-expect-error: a store can delete too
export const half: TokenStore = { get: async () => undefined, set: async () => {} };

/** What a client's members do not take or give. */
export async function calls(): Promise<void> {
  const client = strategy.client('grant');
  // @ts-expect-error: what the API sends is unknown until the caller says what it is
  (await client.projects()).data;
  // @ts-expect-error: a number is no path
  await client.get(7);
  // @ts-expect-error: the status cannot be set
  client.authorized = true;
  // @ts-expect-error: there is no such method
  await client.head('/projects');
  // @ts-expect-error: the token is promised
  client.accessToken().length;
}
