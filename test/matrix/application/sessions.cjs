const secret = 'a secret of the session';

/** The session middleware of a combination, and what a strategy has to be told for it. */
async function sessions({ load, oauthApp }, { session, framework }) {
  if (session === 'cookie-session') {
    const cookieSession = await load('cookie-session');
    // Nothing can be kept on the server beside such a session, so the store is named.
    return {
      middleware: [cookieSession({ secret }), passportShim],
      options: { tokenStore: oauthApp.memoryTokenStore() },
    };
  }
  const expressSession = await load(framework === 'Express 4.16.0' ? 'express-session-1.17.0' : 'express-session');
  return { middleware: [expressSession({ secret, resave: false, saveUninitialized: false })], options: {} };
}

/** Passport since 0.6 calls two methods that cookie-session has not; this is how applications help themselves. */
function passportShim(req, _res, next) {
  for (const method of ['regenerate', 'save']) {
    if (req.session && !req.session[method]) {
      Object.defineProperty(req.session, method, { value: (done) => done(), configurable: true });
    }
  }
  next();
}

module.exports = { sessions };
