// Connect has no `req.query`, no `res.redirect` and no request type of its own.
import connect from 'connect';
import passport from 'passport';
import { type ApiClient, apiClient, logout, requireAuthorization, type Strategy } from '../../../src/index.js';

/** The middleware in Connect's order, for a strategy from elsewhere. */
export function application(strategy: Strategy): connect.Server {
  const app = connect();
  app.use(apiClient(strategy));
  app.use('/login', passport.authenticate('oauth-app'));
  app.use('/private', requireAuthorization({ login: '/login' }));
  app.use('/projects', (req, res, next) => {
    const { apiClient: client } = req as typeof req & { readonly apiClient: ApiClient };
    client.projects().then((projects) => res.end(JSON.stringify(projects)), next);
  });
  app.use('/logout', logout(strategy));
  return app;
}
