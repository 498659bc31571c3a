import { Strategy, type StrategyOptions } from 'passport-oauth-app';
import { onTestFinished } from 'vitest';
import type { World } from './world.js';

/** Adds a strategy for the same service to an application that is opened or open; its callback is registered. */
export function addStrategy(
  { passport, register, service, url }: Pick<World, 'passport' | 'register' | 'service' | 'url'>,
  name: string,
  path = '/callback',
  options: Partial<StrategyOptions> = {},
): Strategy {
  const callbackURL = url + path;
  register(callbackURL);
  const strategy = new Strategy({ ...service.options, name, callbackURL, scope: 'tm', ...options });
  onTestFinished(() => strategy.close());
  passport.use(strategy as never);
  return strategy;
}
