const secret = 'a secret of the session';

/** The session middleware of a combination, and what a strategy has to be told for it. */
async function sessions({ load, oauthApp }, { session, framework }) {
  if (session === 'cookie-session') {
    const cookieSession = await load('cookie-session');
    // Nothing can be kept on the server beside such a session, so the store is named.
    return {
      middleware: [cookieSession({ secret })],
      options: { tokenStore: oauthApp.memoryTokenStore() },
    };
  }
  const expressSession = await load(framework === 'Express 4.16.0' ? 'express-session-1.17.0' : 'express-session');
  return { middleware: [expressSession({ secret, resave: false, saveUninitialized: false })], options: {} };
}

module.exports = { sessions };
