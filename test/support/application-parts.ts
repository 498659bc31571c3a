import { Strategy, type StrategyOptions } from 'passport-oauth-app';
import { onTestFinished } from 'vitest';
import { type Handler, sendJson, type World } from './world.js';

/** The option `userProfile` for a service with opaque tokens. */
export const idFromApi: StrategyOptions['userProfile'] = async (client) => {
  const { data } = await client.get<{ data: { id: string } }>('/user');
  return { id: data.id };
};

/** A handler that logs a user of the application in, without the service. */
export const logInLocally =
  (id?: string): Handler =>
  (req, res, next) =>
    req.logIn({ id: id ?? req.params.id } as Express.User, (error) => (error ? next(error) : sendJson(res, {})));

/** A handler that logs out by Passport's own method. */
export const logOutLocally: Handler = (req, res, next) =>
  req.logout((error) => (error ? next(error) : sendJson(res, {})));

/** The option `callback` of an application that answers with what Passport tells it. */
export const tellOutcome =
  ({ passport }: World): Handler =>
  (req, res, next) =>
    passport.authenticate('oauth-app', (error: unknown, user: unknown, info: unknown, status: unknown) =>
      sendJson(res, { error, user, info, status }),
    )(req, res, next);

/** Adds a strategy for the same service to an application that is opened or open; its callback is registered. */
export function addStrategy(
  { passport, service, url }: Pick<World, 'passport' | 'service' | 'url'>,
  name: string,
  path = '/callback',
  options: Partial<StrategyOptions> = {},
): Strategy {
  const callbackURL = url + path;
  service.register({ clientID: service.options.clientID, redirectUrls: [callbackURL] });
  const strategy = new Strategy({ ...service.options, name, callbackURL, scope: 'tm', ...options });
  onTestFinished(() => strategy.close());
  passport.use(strategy as never);
  return strategy;
}
