import { expect, test } from 'vitest';
import { Clock } from '../../src/emulator/clock.js';
import { Codes } from '../../src/emulator/codes.js';
import { Grants } from '../../src/emulator/grants.js';
import { Secrets } from '../../src/emulator/secrets.js';
import { Users } from '../../src/emulator/users.js';

const approval = {
  clientID: 'c',
  redirectUri: 'http://localhost/',
  userId: '1',
  scopes: ['project'],
  challenge: undefined,
};
const [secrets, clock, users] = [new Secrets('seed'), new Clock(() => 1_700_000_000_000), new Users()];
users.put({ id: '1', name: 'Ada' });

test('of codes that nobody fetches, the oldest go once there are a hundred thousand', () => {
  const codes = new Codes(secrets, clock, 60);
  const issued = Array.from({ length: 100_001 }, () => codes.issue(approval));
  const redeem = (code = '') =>
    codes.redeem({ code, clientID: 'c', redirectUri: approval.redirectUri, verifier: undefined });
  expect(redeem(issued[0])).toHaveProperty('refusal');
  expect(redeem(issued[1])).toHaveProperty('approval');
  expect(redeem(issued.at(-1))).toHaveProperty('approval');
});

test('of grants, those go that were refreshed longest ago', () => {
  const grants = new Grants({ secrets, clock, users, accessTokenLifetime: 7200, refreshTokenReuse: 'refuse' });
  const refreshTokens = Array.from({ length: 2 }, () => grants.start(approval).response.refresh_token);
  const refreshed = grants.refresh(refreshTokens[0] ?? '', 'c');
  const latest = 'refusal' in refreshed ? '' : refreshed.refresh_token;
  for (let n = 0; n < 99_999; n += 1) grants.start(approval);
  expect(grants.refresh(refreshTokens[1] ?? '', 'c')).toHaveProperty('refusal');
  expect(grants.refresh(latest, 'c')).toHaveProperty('refresh_token');
});
