import express, { type Express, type RequestHandler } from 'express';
import { ServiceUnavailableError, type Strategy, TokenStoreError } from 'passport-oauth-app';

/** @param limiter Limits the requests of each address, such as `rateLimit({ limit: 20 })` of express-rate-limit. */
export function installedByUser(strategy: Strategy, limiter: RequestHandler): Express {
  const app = express();
  app.post('/installed', limiter, express.json({ limit: '10kb' }), (req, res, next) => {
    strategy
      .importCode(
        // What the service says of the token. `req.body.domain` may be anybody's.
        ({ organizationDomain, subject }) =>
          subject === undefined ? undefined : `installed ${organizationDomain ?? ''} ${subject}`,
        String(req.body?.code),
      )
      .then((grant) => res.sendStatus(grant ? 204 : 403))
      .catch((error: unknown) => {
        if (error instanceof ServiceUnavailableError || error instanceof TokenStoreError) return next(error);
        res.sendStatus(403);
      });
  });
  return app;
}
