import fc from 'fast-check';
import { test } from 'vitest';
import { ConfigurationError, Strategy, type StrategyOptions } from '../../src/index.js';
import { shownOf } from '../security/shown.js';
import { holds } from './fuzz.js';
import { asOwnProperties, hostileAfter, hostileText } from './hostile.js';

const SECRET = 'canary-of-the-client-secret';
const GOOD: StrategyOptions = {
  authUrl: 'https://accounts.example.com',
  baseUrl: 'https://api.example.com',
  clientID: 'id',
  clientSecret: SECRET,
  callbackURL: '/callback',
  scope: 'tm',
};
const names = [
  ...['authUrl', 'baseUrl', 'enterpriseBaseUrl', 'clientID', 'clientSecret', 'callbackURL', 'scope', 'name', 'pkce'],
  ...['organizationDomain', 'userProfile', 'passReqToCallback', 'tokenStore', 'grantId', 'encryptionKeys', 'refresh'],
  ...['cache', 'concurrency', 'timeout', 'dispatcher', 'clock', '__proto__', 'constructor', 'clientsecret'],
];
const value = fc.oneof(
  hostileAfter('https://', 'http://', 'http://localhost', 'https://{domain}.'),
  hostileText,
  fc.anything(),
  fc.constantFrom('https://{domain}.api.example.com', 0, 1, -1, 2 ** 31),
);
const changes = fc.array(fc.tuple(fc.constantFrom(...names), value), { maxLength: 4 });

/** The strategy, or `undefined` for options that were refused as they should be. */
function strategyOf(options: unknown): Strategy | undefined {
  try {
    return new Strategy(options as StrategyOptions);
  } catch (error) {
    if (!(error instanceof ConfigurationError)) throw error;
    if (shownOf(error).includes(SECRET)) throw new Error('the error shows the secret');
    return undefined;
  }
}

test('any options make a strategy or a ConfigurationError, neither of which shows a secret', async () => {
  await holds('option objects', 0.02, [changes], (entries) => {
    const strategy = strategyOf(asOwnProperties([...Object.entries(GOOD), ...entries]));
    if (strategy && !entries.some(([name]) => name === 'clientSecret') && shownOf(strategy).includes(SECRET)) {
      throw new Error('the strategy shows the secret');
    }
  });
  await holds('options that are no objects', 0.01, [fc.anything()], strategyOf);
});
