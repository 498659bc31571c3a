/** The same session for all applications that have express-session. */
export const SESSION = { secret: 'bench session secret', resave: false, saveUninitialized: false };

/** The page of a user who is logged in; it calls no API. */
export function answerHome(req, res) {
  if (req.isAuthenticated()) res.json({ user: req.user.id });
  else res.status(401).json({});
}
