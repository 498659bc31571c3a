import type { StrategyOptions } from 'passport-oauth-app';
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
