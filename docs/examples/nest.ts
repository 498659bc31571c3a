import 'reflect-metadata';
import {
  type ArgumentsHost,
  Catch,
  Controller,
  type ExecutionContext,
  Get,
  Injectable,
  Module,
  Post,
  Req,
  Res,
  UseGuards,
} from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { AuthGuard, PassportStrategy } from '@nestjs/passport';
import type { Request, Response } from 'express';
import session from 'express-session';
import passport from 'passport';
import { apiClient, logout, OAuthAppError, type Profile, requireAuthorization, Strategy } from 'passport-oauth-app';

@Injectable()
class OAuthAppStrategy extends PassportStrategy(Strategy) {
  constructor() {
    super({
      authUrl: process.env.AUTH_URL,
      baseUrl: process.env.BASE_URL,
      clientID: process.env.CLIENT_ID,
      clientSecret: process.env.CLIENT_SECRET,
      callbackURL: 'http://localhost:3000/callback',
      scope: ['project'],
    });
  }

  validate(_accessToken: string, _refreshToken: string, profile: Profile) {
    return { id: profile.id };
  }
}

@Injectable()
class OAuthAppGuard extends AuthGuard('oauth-app') {
  override async canActivate(context: ExecutionContext): Promise<boolean> {
    const allowed = await super.canActivate(context);
    await super.logIn(context.switchToHttp().getRequest());
    return allowed as boolean;
  }
}

@Controller()
class AppController {
  @Get('login')
  @UseGuards(OAuthAppGuard)
  login() {}

  @Get('callback')
  @UseGuards(OAuthAppGuard)
  callback(@Req() req: Request, @Res() res: Response) {
    res.redirect((req.session as { returnTo?: string }).returnTo ?? '/');
  }

  @Get('projects')
  projects(@Req() req: Request) {
    return req.apiClient.projects();
  }

  @Post('logout')
  logOut() {}
}

/** Responds with the status of the error. By default, NestJS would respond with 500. */
@Catch(OAuthAppError)
class OAuthAppErrorFilter {
  catch(error: OAuthAppError, host: ArgumentsHost) {
    host.switchToHttp().getResponse<Response>().status(error.status).json({ code: error.code });
  }
}

@Module({ controllers: [AppController], providers: [OAuthAppStrategy] })
class AppModule {}

async function main() {
  passport.serializeUser((user, done) => done(null, user));
  passport.deserializeUser((user: Express.User, done) => done(null, user));
  const app = await NestFactory.create(AppModule, { logger: ['error', 'warn'] });
  const strategy = app.get(OAuthAppStrategy);
  app.useGlobalFilters(new OAuthAppErrorFilter());
  app.use(session({ secret: 'only for development', resave: false, saveUninitialized: false }));
  app.use(passport.session());
  app.use(apiClient(strategy));
  app.use('/projects', requireAuthorization({ login: '/login' }));
  app.use('/logout', logout(strategy));
  await app.listen(3000);
}

main();
