const { sessions } = require('./sessions.cjs');

/** The application under NestJS. Plain JavaScript has no decorators: they are called. */
async function createApplication(modules, combination, options) {
  const { load, oauthApp } = modules;
  await load('reflect-metadata');
  const [common, core, glue] = [
    await load('@nestjs/common'),
    await load('@nestjs/core'),
    await load('@nestjs/passport'),
  ];
  const passport = await load('passport');
  passport.serializeUser((user, done) => done(null, user));
  passport.deserializeUser((user, done) => done(null, user));

  class OAuthAppStrategy extends glue.PassportStrategy(oauthApp.Strategy) {
    constructor() {
      super(options);
    }

    validate(_accessToken, _refreshToken, profile) {
      return { id: profile.id };
    }
  }
  common.Injectable()(OAuthAppStrategy);

  const controllers = [createController(common, createGuard(common, glue))];
  class AppModule {}
  common.Module({ controllers, providers: [OAuthAppStrategy] })(AppModule);

  const nest = await core.NestFactory.create(AppModule, { logger: ['error', 'warn'] });
  const strategy = nest.get(OAuthAppStrategy);
  nest.useGlobalFilters(createFilter(common, oauthApp));
  for (const middleware of (await sessions(modules, combination)).middleware) nest.use(middleware);
  nest.use(passport.session());
  nest.use(oauthApp.apiClient(strategy));
  nest.use('/projects', oauthApp.requireAuthorization({ login: '/login' }));
  nest.use('/logout', oauthApp.logout(strategy));
  await nest.init();
  return { app: nest.getHttpAdapter().getInstance(), strategy };
}

/** As NestJS' documentation has it: the guard authenticates, and logs in by itself. */
function createGuard(common, glue) {
  return class OAuthAppGuard extends glue.AuthGuard('oauth-app') {
    async canActivate(context) {
      const allowed = await super.canActivate(context);
      await super.logIn(context.switchToHttp().getRequest());
      return allowed;
    }

    handleRequest(error, user, info, _context, status) {
      if (error) throw error;
      if (!user) throw new common.HttpException(info?.message ?? 'Not logged in', status ?? 401);
      return user;
    }
  };
}

/** NestJS answers 500 to every error that is not its own; this one gives ours the status that they ask for. */
function createFilter({ Catch }, { OAuthAppError }) {
  class OAuthAppErrorFilter {
    catch(error, host) {
      host.switchToHttp().getResponse().status(error.status).json({ code: error.code, message: error.message });
    }
  }
  Catch(OAuthAppError)(OAuthAppErrorFilter);
  return new OAuthAppErrorFilter();
}

function createController(common, Guard) {
  class AppController {
    login() {}

    callback(req, res) {
      res.redirect(req.session.returnTo ?? '/');
    }

    projects(req) {
      return req.apiClient.projects();
    }

    session(req) {
      return { session: req.session, user: req.user };
    }

    logOut() {}
  }
  const route = (name, ...decorators) => {
    const descriptor = Object.getOwnPropertyDescriptor(AppController.prototype, name);
    for (const decorate of decorators) decorate(AppController.prototype, name, descriptor);
  };
  route('login', common.Get('login'), common.UseGuards(Guard));
  route('callback', common.Get(['callback', 'forged']), common.UseGuards(Guard));
  route('projects', common.Get('projects'));
  route('session', common.Get('session'));
  route('logOut', common.Post('logout'));
  for (const name of ['callback', 'projects', 'session']) common.Req()(AppController.prototype, name, 0);
  common.Res()(AppController.prototype, 'callback', 1);
  common.Controller()(AppController);
  return AppController;
}

module.exports = { createApplication };
