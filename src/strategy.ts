import type { IncomingMessage } from 'node:http';
import OAuth2Strategy from 'passport-oauth2';
import type { ApiClient } from './api/api-client.js';
import { Application } from './application.js';
import { ConfigurationError, OAuthAppError } from './errors.js';
import { type LoginEvent, publishLogin } from './events.js';
import { isRandomGrantId } from './grants/grant-id.js';
import type { GrantKeeper } from './grants/grant-keeper.js';
import { beginLogin, type LoginOptions } from './login/begin-login.js';
import { hasCallbackParameters } from './login/callback-query.js';
import { type CallbackOutcome, finishLogin } from './login/finish-login.js';
import { originalPath, originalUrl } from './login/incoming.js';
import type { Profile } from './login/profile.js';
import { type Handover, handOverAtLogIn, handOverNow } from './login/session-handover.js';
import type { AnyVerify } from './login/verify.js';
import { checkVerify, resolveOptions, type StrategyOptions } from './options.js';

/** How `verify` answers: an error, or a user, or `false` and why not. */
export type VerifyCallback = (error?: unknown, user?: unknown, info?: unknown) => void;

/** A request as handlers of Express, 4 or 5, and of Connect have it. */
export type IncomingRequest = IncomingMessage & Express.Request;

/** `verify` as it is most often written. */
export type Verify = (accessToken: string, refreshToken: string, profile: Profile, done: VerifyCallback) => unknown;

/** `verify` with the answer of the token endpoint. */
export type VerifyWithParams = (
  accessToken: string,
  refreshToken: string,
  params: Readonly<Record<string, unknown>>,
  profile: Profile,
  done: VerifyCallback,
) => unknown;

/** `verify` with `passReqToCallback`. Written as a method, so that the request may be typed as the framework's own. */
export type VerifyWithRequest = {
  verify(
    req: IncomingRequest,
    accessToken: string,
    refreshToken: string,
    profile: Profile,
    done: VerifyCallback,
  ): unknown;
}['verify'];

/** `verify` with `passReqToCallback` and the answer of the token endpoint. */
export type VerifyWithRequestAndParams = {
  verify(
    req: IncomingRequest,
    accessToken: string,
    refreshToken: string,
    params: Readonly<Record<string, unknown>>,
    profile: Profile,
    done: VerifyCallback,
  ): unknown;
}['verify'];

/** What Passport lets a strategy do with a request; exactly one of them. */
interface PassportActions {
  success(user: unknown, info?: unknown): void;
  fail(info?: unknown, status?: number): void;
  redirect(url: string, status?: number): void;
  error(error: unknown): void;
}

/** The base class, without the types of Express that its own declarations bring along. */
interface PassportStrategy extends PassportActions {
  name: string;
  authenticate(req: IncomingMessage, options?: object): void;
}

const Base: new (options: object, verify: unknown) => PassportStrategy = OAuth2Strategy as unknown as new (
  options: object,
  verify: unknown,
) => PassportStrategy;

/** Leads from a strategy, or an object that Passport derived from one, to what is behind it. Not enumerable: no log finds it. */
const APPLICATION = Symbol('application');

/** Options of `passport.authenticate` and `passport.authorize` that the strategy heeds. */
interface AuthenticateOptions extends LoginOptions {
  readonly session?: unknown;
  readonly assignProperty?: unknown;
}

/**
 * A Passport strategy for services with a JSON token endpoint and rotating refresh tokens.
 *
 * It logs users in; `apiClient(strategy)` then leaves every request with an API client whose token never goes stale.
 *
 * @example
 * ```ts
 * passport.use(new Strategy({
 *   authUrl: 'https://accounts.example.com',
 *   baseUrl: 'https://api.example.com',
 *   clientID: process.env.CLIENT_ID ?? '',
 *   clientSecret: process.env.CLIENT_SECRET ?? '',
 *   callbackURL: 'https://app.example.net/callback',
 *   scope: ['project', 'tm'],
 * }, (accessToken, refreshToken, profile, done) => done(null, { id: profile.id })));
 * ```
 */
export class Strategy extends Base {
  /** @throws ConfigurationError that names the option that is wrong, unknown or missing */
  constructor(options: StrategyOptions & { readonly passReqToCallback: true }, verify: VerifyWithRequest);
  constructor(options: StrategyOptions & { readonly passReqToCallback: true }, verify: VerifyWithRequestAndParams);
  constructor(options: StrategyOptions, verify: Verify);
  constructor(options: StrategyOptions, verify: VerifyWithParams);
  constructor(options: StrategyOptions);
  constructor(options: StrategyOptions, verify?: AnyVerify) {
    const settings = resolveOptions(options);
    checkVerify(verify);
    // The base class gets no secret: it would show it to whoever logs the strategy. Nothing of its exchange is used.
    super(
      {
        authorizationURL: `${settings.authUrl}/oauth/authorize`,
        tokenURL: `${settings.authUrl}/oauth/token`,
        clientID: settings.clientID,
        clientSecret: '',
        callbackURL: settings.callbackURL,
        scope: settings.scope,
      },
      verify ?? noVerify,
    );
    this.name = settings.name;
    const behind: Behind = { application: new Application(settings), verify };
    Object.defineProperty(this, APPLICATION, { value: () => behind });
  }

  /** Called by Passport for the routes of login and callback. */
  override authenticate(req: IncomingMessage, options: AuthenticateOptions = {}): void {
    // An instance that was given to Passport is shared by requests: its actions are this request's for this tick only.
    const actions: PassportActions = {
      success: this.success.bind(this),
      fail: this.fail.bind(this),
      redirect: this.redirect.bind(this),
      error: this.error.bind(this),
    };
    void authenticate(behind(this), actions, req, options);
  }

  /**
   * An API client for a grant outside of any request: for jobs and webhooks. It shares lock, cache and store with the requests.
   *
   * @param grantId As `req.apiClient.grantId` gave it, or as the option `grantId` makes it.
   * @throws ConfigurationError where no token store is known: without the option `tokenStore` the first request brings it
   */
  client(grantId: string): ApiClient {
    const { application } = behind(this);
    return application.clientOf(application.sourceOf(application.keeper(), grantId));
  }

  /** Lets running refreshes and saves finish, and frees connections. To be awaited before the process ends. */
  async close(): Promise<void> {
    await behind(this).application.close();
  }
}

interface Behind {
  readonly application: Application;
  readonly verify: AnyVerify | undefined;
}

/** The application behind a strategy. @throws ConfigurationError if it is none of this package's */
export function applicationOf(strategy: Strategy): Application {
  return behind(strategy).application;
}

function behind(strategy: object): Behind {
  const find: unknown =
    typeof strategy === 'object' && strategy !== null ? Reflect.get(strategy, APPLICATION) : undefined;
  if (typeof find === 'function') return find() as Behind;
  throw new ConfigurationError('strategy: expected an instance of the Strategy of passport-oauth-app', {
    option: 'strategy',
  });
}

/** Stands in the base class for a `verify` that was left out. */
function noVerify(): void {}

async function authenticate(
  { application, verify }: Behind,
  actions: PassportActions,
  req: IncomingMessage,
  options: AuthenticateOptions,
): Promise<void> {
  try {
    const res = application.responseOf(req);
    // The URL of a callback holds the code, and the one of a login may hold more than others should know.
    res.setHeader('Cache-Control', 'no-store');
    res.setHeader('Referrer-Policy', 'no-referrer');
    const keeper = application.checkLoginIsPossible(req, options.session !== false && !options.assignProperty);
    if (!isCallback(req, application.settings.callbackURL)) {
      actions.redirect(await beginLogin(application, req, res, options));
      return;
    }
    await callback(application, keeper, actions, req, options, () => finishLogin(application, req, res, verify));
  } catch (error) {
    actions.error(error);
  }
}

async function callback(
  application: Application,
  keeper: GrantKeeper,
  actions: PassportActions,
  req: IncomingMessage,
  options: AuthenticateOptions,
  finish: () => Promise<CallbackOutcome>,
): Promise<void> {
  const since = performance.now();
  const tell = (event: Pick<LoginEvent, 'outcome' | 'grantId' | 'reason'>) =>
    publishLogin({ strategy: application.settings.name, durationMs: performance.now() - since, ...event });
  try {
    const outcome = await finish();
    if (outcome.kind === 'fail') {
      tell({ outcome: outcome.reason === 'declined' ? 'declined' : 'refused', reason: outcome.reason });
      actions.fail(outcome.info, outcome.status);
      return;
    }
    tell({ outcome: 'success', grantId: await keep(application, keeper, req, options, outcome) });
    actions.success(outcome.verdict.user, outcome.verdict.info);
  } catch (error) {
    tell({ outcome: 'error', reason: error instanceof OAuthAppError ? error.code : 'ERR_APPLICATION' });
    throw error;
  }
}

/** Keeps the grant, and sees to it that the session will refer to it. */
async function keep(
  application: Application,
  keeper: GrantKeeper,
  req: IncomingMessage,
  options: AuthenticateOptions,
  { tokens, verdict, returnTo }: Extract<CallbackOutcome, { readonly kind: 'success' }>,
): Promise<string> {
  const grantId = application.newGrantId(req, verdict.user);
  const remove = (id: string) => void keeper.remove(id).catch(() => {});
  await keeper.put(grantId, tokens);
  const handover: Handover = {
    key: application.settings.name,
    reference: application.keepsReference ? grantId : undefined,
    returnTo,
    onFailure: () => application.keepsReference && remove(grantId),
    onReplaced: (former) => application.keepsReference && isRandomGrantId(former) && remove(former),
  };
  if (options.assignProperty) await handOverNow(req, handover);
  else handOverAtLogIn(req, handover);
  return grantId;
}

/** Whether a request is a callback: by its path, or by what it brings where a proxy has changed the path. */
function isCallback(req: IncomingMessage, callbackURL: string): boolean {
  const path = originalPath(req);
  return (
    path === new URL(callbackURL, `http://here.invalid${path.startsWith('/') ? path : '/'}`).pathname ||
    hasCallbackParameters(originalUrl(req))
  );
}
