import express from 'express';
import session from 'express-session';
import passport from 'passport';
import { answerHome, SESSION } from './common.mjs';

/** The least that any application with a login has: Express, a session, Passport. What the others cost is counted from here. */
export function createApp({ store }) {
  const auth = new passport.Passport();
  auth.serializeUser((user, done) => done(null, user));
  auth.deserializeUser((user, done) => done(null, user));
  const app = express();
  app.use(session({ ...SESSION, store }), auth.session());
  app.get('/login', (req, res, next) => {
    req.logIn({ id: '1' }, (error) => (error ? next(error) : res.redirect('/')));
  });
  app.get('/', answerHome);
  return { handler: app };
}
