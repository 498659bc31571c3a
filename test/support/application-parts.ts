import { type Handler, sendJson } from './world.js';

/** A handler that logs a user of the application in, without the service. */
export const logInLocally =
  (id?: string): Handler =>
  (req, res, next) =>
    req.logIn({ id: id ?? req.params.id } as Express.User, (error) => (error ? next(error) : sendJson(res, {})));

/** A handler that logs out by Passport's own method. */
export const logOutLocally: Handler = (req, res, next) =>
  req.logout((error) => (error ? next(error) : sendJson(res, {})));
