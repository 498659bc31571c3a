import { describe, expect } from 'vitest';
import { json } from '../support/faulty-server.js';
import { type Grants, REFUSAL, test } from './fixture.js';

describe('a token response with a new refresh token that is otherwise unusable', () => {
  const sendUnusable = async ({ manager, service, clock }: Grants, refresh_token: string) => {
    service.next(json({ access_token: 'a b', token_type: 'bearer', refresh_token }));
    await expect(manager.current('id')).rejects.toMatchObject({ name: 'TokenResponseError' });
    clock.advance(1);
  };

  test('costs no login: the next refresh sends the new refresh token, also of another process', async ({
    expired: grants,
  }) => {
    await sendUnusable(grants, 'refresh-rotated');
    expect(await grants.use(grants.another())).toBe('access-1');
    expect(grants.sent()).toEqual(['refresh-old', 'refresh-rotated']);
  });

  test('costs no login if the service refuses the new refresh token: the previous one is sent then', async ({
    expired: grants,
  }) => {
    await sendUnusable(grants, 'made-up');
    grants.service.next(REFUSAL);
    const grant = await grants.manager.current('id');
    expect(grants.sent()).toEqual(['refresh-old', 'made-up', 'refresh-old']);
    expect(grant).not.toHaveProperty('previousRefreshToken');
  });

  test('keeps the previous refresh token if it works and the response brings no other', async ({ expired: grants }) => {
    await sendUnusable(grants, 'made-up');
    grants.service.next(REFUSAL);
    grants.service.next(json({ access_token: 'second', token_type: 'bearer', expires_in: 7200 }));
    const grant = await grants.manager.current('id');
    expect(grant).toMatchObject({ accessToken: 'second', refreshToken: 'refresh-old' });
  });
});
