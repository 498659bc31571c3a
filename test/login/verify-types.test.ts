import { memoryTokenStore, type Profile, Strategy, type VerifyCallback } from 'passport-oauth-app';
import { beforeEach, describe, expect, expectTypeOf, test } from 'vitest';
import { mayLeave } from '../support/may-leave.js';

// What is compiled is not closed.
beforeEach(() => mayLeave(/open-strategies/));

const options = {
  ...{ authUrl: 'https://a.example', baseUrl: 'https://b.example', clientID: 'id', clientSecret: 'secret' },
  ...{ callbackURL: '/callback', scope: 'tm', tokenStore: memoryTokenStore() },
};

/** Compiled by `npm run types`: parameters without annotations have types in strict TypeScript. */
describe('the parameters of verify have types without annotations', () => {
  test('four of them', () => {
    const strategy = new Strategy(options, (accessToken, refreshToken, profile, done) => {
      expectTypeOf(accessToken).toEqualTypeOf<string>();
      expectTypeOf(refreshToken).toEqualTypeOf<string>();
      expectTypeOf(profile.id).toEqualTypeOf<string | undefined>();
      done(null, { id: profile.id });
    });
    expect(strategy.name).toBe('oauth-app');
  });

  test('five of them, with the token response', () => {
    new Strategy(options, (accessToken, refreshToken, params, profile, done) => {
      expectTypeOf([accessToken, refreshToken]).toEqualTypeOf<string[]>();
      expectTypeOf(params.expires_in).toEqualTypeOf<unknown>();
      expectTypeOf(profile.id).toEqualTypeOf<string | undefined>();
      expectTypeOf(done).toEqualTypeOf<VerifyCallback>();
      done(null, { id: profile.id });
    });
  });

  test('six of them, with the request', () => {
    new Strategy({ ...options, passReqToCallback: true }, (req, accessToken, refreshToken, params, profile, done) => {
      expectTypeOf(req.url).toEqualTypeOf<string | undefined>();
      expectTypeOf([accessToken, refreshToken]).toEqualTypeOf<string[]>();
      done(null, { id: profile.id, scope: params.scope });
    });
    new Strategy({ ...options, passReqToCallback: true }, (req, _accessToken, _refreshToken, profile, done) =>
      done(null, { id: profile.id, from: req.url }),
    );
  });

  test('and what userProfile returns shows in the profile', () => {
    const userProfile = async () => ({ email: 'ada@example.com', age: 36 });
    new Strategy({ ...options, userProfile }, (_accessToken, _refreshToken, profile, done) => {
      expectTypeOf(profile.email).toEqualTypeOf<string>();
      expectTypeOf(profile.age).toEqualTypeOf<number>();
      done(null, { id: profile.id });
    });
    new Strategy({ ...options, userProfile }, (_accessToken, _refreshToken, _params, profile, done) => {
      expectTypeOf(profile.email).toEqualTypeOf<string>();
      done(null, { id: profile.id });
    });
  });

  test('and may be annotated too', () => {
    new Strategy(options, (_a: string, _r: string, profile: Profile, done: VerifyCallback) => done(null, profile));
    new Strategy(
      options,
      (_a: string, _r: string, _p: Record<string, unknown>, profile: Profile, done: VerifyCallback) =>
        done(null, profile),
    );
  });
});
