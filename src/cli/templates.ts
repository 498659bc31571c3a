/** How the files of an application import packages. */
export type ModuleFormat = 'module' | 'commonjs' | 'typescript';

/** Returns the files of a new application, by name. @param sessionSecret Signs its session cookies. */
export function applicationFiles(format: ModuleFormat, sessionSecret: string): Readonly<Record<string, string>> {
  // An ES module whatever the package.json says.
  const extension = format === 'typescript' ? 'mts' : 'js';
  return {
    [`app.${extension}`]: application(format),
    '.env': environment(sessionSecret),
    [`app.test.${extension}`]: test(format),
  };
}

function importing(format: ModuleFormat, what: string, from: string): string {
  if (format !== 'commonjs') return `import ${what} from '${from}';`;
  return `const ${what} = require('${from}');`;
}

function application(format: ModuleFormat): string {
  const isTyped = format === 'typescript';
  const typed = (annotation: string) => (isTyped ? annotation : '');
  const names = `{ apiClient, logout, oauthErrors, requireAuthorization, Strategy${typed(', type StrategyOptions')} }`;
  const isMain = format === 'commonjs' ? 'require.main === module' : 'process.argv[1] === import.meta.filename';
  return `${importing(format, isTyped ? 'express, { type Express }' : 'express', 'express')}
${importing(format, 'session', 'express-session')}
${importing(format, 'passport', 'passport')}
${importing(format, names, 'passport-oauth-app')}

/** Creates the application. Its options come from outside, so that the test can use the emulator. */
${format === 'commonjs' ? '' : 'export '}function createApp(options${typed(': StrategyOptions')})${typed(': Express')} {
  const strategy = new Strategy(options);
  const authenticator = new passport.Passport();
  authenticator.use(strategy);
  authenticator.serializeUser((user, done) => done(null, user));
  authenticator.deserializeUser((user${typed(': Express.User')}, done) => done(null, user));

  const app = express();
  app.use(session({ secret: process.env.SESSION_SECRET ?? 'only for tests', resave: false, saveUninitialized: false }));
  app.use(authenticator.session());
  app.use(apiClient(strategy));

  app.get('/', (_req, res) => {
    res.send('<a href="/projects">My projects</a> <form method="post" action="/logout"><button>Log out</button></form>');
  });
  app.get('/login', authenticator.authenticate('oauth-app'));
  app.get(
    '/callback',
    authenticator.authenticate('oauth-app', { successReturnToOrRedirect: '/projects', failureRedirect: '/' }),
  );
  app.get('/projects', requireAuthorization({ login: '/login' }), (req, res, next) => {
    req.apiClient
      .projects()
      .then((projects) => res.json(projects))
      .catch(next);
  });
  app.post('/logout', logout(strategy), (_req, res) => res.redirect(303, '/'));
  app.use(oauthErrors({ login: '/login' }));
  return app;
}
${format === 'commonjs' ? '\nmodule.exports = { createApp };\n' : ''}
if (${isMain}) {
  const { AUTH_URL = '', BASE_URL = '', CLIENT_ID = '', CLIENT_SECRET = '', CALLBACK_URL = '', PORT = '3000' } = process.env;
  const app = createApp({
    authUrl: AUTH_URL,
    baseUrl: BASE_URL,
    clientID: CLIENT_ID,
    clientSecret: CLIENT_SECRET,
    callbackURL: CALLBACK_URL,
    scope: ['project'],
  });
  app.listen(Number(PORT), () => console.log(\`Open http://localhost:\${PORT}/projects\`));
}
`;
}

function environment(sessionSecret: string): string {
  return `AUTH_URL=http://127.0.0.1:4000
BASE_URL=http://127.0.0.1:4000
CLIENT_ID=sample-client-id
CLIENT_SECRET=sample-client-secret
CALLBACK_URL=http://localhost:3000/callback
SESSION_SECRET=${sessionSecret}
`;
}

function test(format: ModuleFormat): string {
  const load = (what: string, from: string) => importing(format, what, from);
  return `${load('assert', 'node:assert/strict')}
${load('{ once }', 'node:events')}
${load('{ createServer }', 'node:http')}
${load('{ test }', 'node:test')}
${load('{ startEmulator }', 'passport-oauth-app/emulator')}
${load('{ createApp }', format === 'typescript' ? './app.mjs' : './app.js')}

test('a user sees their projects after the login', async (t) => {
  const service = await startEmulator();
  t.after(() => service.close());
  const server = createServer((req, res) => app(req, res)).listen(0);
  t.after(() => server.close());
  await once(server, 'listening');
  const address = server.address();
  const origin = \`http://localhost:\${typeof address === 'object' && address !== null ? address.port : 0}\`;

  const callbackURL = \`\${origin}/callback\`;
  service.register({ clientID: service.options.clientID, redirectUrls: [callbackURL] });
  const app = createApp({ ...service.options, callbackURL, scope: ['project'] });
  const { response } = await service.logIn(fetch, { login: \`\${origin}/login\` });

  assert.equal(response.status, 200);
  const projects = await response.json();
  assert.ok(projects.data.length > 0);
});
`;
}
