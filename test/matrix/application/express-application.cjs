const { sessions } = require('./sessions.cjs');

/** The application under Express or Connect. */
async function createApplication(modules, combination, options) {
  const { load, oauthApp } = modules;
  const passport = await load(`passport-${combination.passport}`);
  const session = await sessions(modules, combination);
  const strategy = new oauthApp.Strategy(
    { ...options, ...session.options },
    (_accessToken, _refreshToken, profile, done) => done(null, { id: profile.id }),
  );
  passport.use(strategy);
  passport.serializeUser((user, done) => done(null, user));
  passport.deserializeUser((user, done) => done(null, user));

  const app = (await load(combination.framework.toLowerCase().replace(' ', '-')))();
  for (const middleware of session.middleware) app.use(middleware);
  app.use(passport.session());
  app.use(oauthApp.apiClient(strategy));
  const addRoutes = combination.framework.startsWith('Connect') ? addConnectRoutes : addExpressRoutes;
  addRoutes(app, { passport, strategy, oauthApp });
  app.use((error, _req, res, _next) => {
    res.statusCode = error.status ?? 500;
    res.end(JSON.stringify({ code: error.code, message: error.message }));
  });
  return { app, strategy };
}

function addExpressRoutes(app, { passport, strategy, oauthApp }) {
  const { logout, requireAuthorization } = oauthApp;
  const outcomes = { successReturnToOrRedirect: '/', failureRedirect: '/declined' };
  app.get('/login', passport.authenticate('oauth-app'));
  app.get('/callback', passport.authenticate('oauth-app', outcomes));
  app.get('/forged', passport.authenticate(strategy));
  app.get('/declined', (_req, res) => res.json({ declined: true }));
  app.get('/projects', requireAuthorization({ login: '/login' }), (req, res, next) => {
    req.apiClient.projects().then((projects) => res.json(projects), next);
  });
  app.get('/session', (req, res) => res.json({ session: req.session, user: req.user }));
  app.post('/logout', logout(strategy), (_req, res) => res.redirect('/declined'));
}

function addConnectRoutes(app, { passport, strategy, oauthApp }) {
  const { logout, requireAuthorization } = oauthApp;
  app.use('/login', passport.authenticate('oauth-app'));
  app.use('/callback', passport.authenticate('oauth-app'));
  app.use('/callback', (req, res) => redirect(res, req.session.returnTo ?? '/'));
  app.use('/forged', passport.authenticate(strategy));
  app.use('/projects', requireAuthorization({ login: '/login' }));
  app.use('/projects', (req, res, next) => {
    req.apiClient.projects().then((projects) => res.end(JSON.stringify(projects)), next);
  });
  app.use('/session', (req, res) => res.end(JSON.stringify({ session: req.session, user: req.user })));
  app.use('/logout', logout(strategy));
  app.use('/logout', (_req, res) => res.end());
}

function redirect(res, location) {
  res.writeHead(302, { location });
  res.end();
}

module.exports = { createApplication };
