import { type Handler, sendJson, type World } from './world.js';

/** The option `callback` of an application that answers with what Passport tells it. */
export const tellOutcome =
  ({ passport }: World): Handler =>
  (req, res, next) =>
    passport.authenticate('oauth-app', (error: unknown, user: unknown, info: unknown, status: unknown) =>
      sendJson(res, { error, user, info, status }),
    )(req, res, next);
