import { answerHome, loginApp } from './common.mjs';

/**
 * The least that any application with a login has: Express, a session, Passport. What the others cost is counted from here.
 *
 * @param {{ sessionChars?: number, grantChars?: number }} options `sessionChars`: the size of the stored session, at least;
 *   `grantChars`: makes each request read so many characters from Redis, with the client of the sessions
 */
export function createApp({ store, redis, sessionChars = 0, grantChars }) {
  const { app } = loginApp({ store, keepsUser: true });
  app.get('/login', (req, res, next) => {
    req.logIn({ id: '1' }, async (error) => {
      if (error) return next(error);
      const missing = sessionChars - JSON.stringify(req.session).length - ',"padding":""'.length;
      if (missing > 0) req.session.padding = 'x'.repeat(missing);
      if (grantChars !== undefined) await redis.set('bare:grant', 'x'.repeat(grantChars));
      res.redirect('/');
    });
  });
  if (grantChars !== undefined)
    app.use(async (_req, _res, next) => {
      await redis.get('bare:grant');
      next();
    });
  app.get('/', answerHome);
  return { handler: app };
}
