import express from 'express';
import session from 'express-session';
import passport from 'passport';

/** The same session for all applications that have express-session. */
const SESSION = { secret: 'bench session secret', resave: false, saveUninitialized: false };

/**
 * Express with a session and Passport, as all applications have them.
 *
 * @param {{ store?: object, strategy?: object, keepsUser?: boolean }} options `keepsUser`: the whole user in the session, not the id alone
 */
export function loginApp({ store, strategy, keepsUser = false }) {
  const auth = new passport.Passport();
  if (strategy) auth.use(strategy);
  auth.serializeUser((user, done) => done(null, keepsUser ? user : user.id));
  auth.deserializeUser((kept, done) => done(null, keepsUser ? kept : { id: kept }));
  const app = express();
  app.use(session({ ...SESSION, store }), auth.session());
  return { app, auth };
}

/** The page of a user who is logged in; it calls no API. */
export function answerHome(req, res) {
  if (req.isAuthenticated()) res.json({ user: req.user.id });
  else res.status(401).json({});
}

/** Answers after so many milliseconds, and saves its session then. @param {string} [name] of the session in the request */
export function answerLate(name = 'session') {
  return async (req, res) => {
    req[name].visits = (req[name].visits ?? 0) + 1;
    await new Promise((resolve) => setTimeout(resolve, Number(req.query.ms)));
    res.json({});
  };
}

/** Users who are named by a header, without sessions. */
export function headerUser(req, _res, next) {
  req.user = req.headers['x-user'];
  next();
}
