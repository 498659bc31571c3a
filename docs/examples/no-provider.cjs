const { Strategy } = require('passport-oauth-app');

exports.createStrategy = (tokenStore, verify) =>
  new Strategy(
    {
      name: 'tracker',
      authUrl: 'https://accounts.tracker.example',
      authorizationPath: '/oauth/authorize',
      tokenPath: '/oauth/token',
      tokenRequest: 'form',
      baseUrl: 'https://api.tracker.example',
      apiPath: '/v1',
      clientID: process.env.CLIENT_ID,
      clientSecret: process.env.CLIENT_SECRET,
      callbackURL: 'http://localhost:3000/callback',
      scope: ['issues:read'],
      userProfile: async (client) => {
        const { id, name } = await client.get('/me');
        return { id: String(id), displayName: name };
      },
      tokenStore,
      grantId: (_req, user) => String(user.id),
    },
    verify,
  );
