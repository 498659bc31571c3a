import type { IncomingMessage } from 'node:http';
import OAuth2Strategy from 'passport-oauth2';
import { type ApiClient, createApiClient } from '../api/api-client.js';
import { fn } from '../checks.js';
import { ConfigurationError, ofStrategy } from '../errors.js';
import { checkedGrantId, type GrantSummary } from '../grants/grant.js';
import type { PassportActions, RouteOptions } from '../login/login-context.js';
import type { AnyVerify, Verify, VerifyWithRequest } from '../login/verify.js';
import {
  type ImportedTokens,
  type KeepAliveOptions,
  type KeepAliveResult,
  resolveOptions,
  type Settings,
  type StrategyOptions,
} from '../options.js';
import { GrantCredentials } from '../refresh/grant-credentials.js';
import { loadAhead, succeedOnce } from '../waiting.js';
import { Runtime } from './runtime.js';

/** Maximum number of concurrent deletions, so that a long list does not flood the token store. */
const DELETIONS_AT_ONCE = 50;

interface PassportStrategy extends PassportActions {
  name: string;
  authenticate(req: IncomingMessage, options?: object): void;
}

/** The base class, without the types of Express that its declarations import. */
const Base = OAuth2Strategy as unknown as new (options: object, verify: unknown) => PassportStrategy;

/** Key of a strategy's runtime, which the objects that Passport derives for requests inherit. Not enumerable, so that no log prints it. */
const RUNTIME: unique symbol = Symbol('runtime');

/** Returns the runtime of a strategy. @throws ConfigurationError unless it is a Strategy of this package */
export function runtimeOf(strategy: object): Runtime {
  const runtime: unknown = Reflect.get(Object(strategy), RUNTIME);
  if (runtime instanceof Runtime) return runtime;
  throw new ConfigurationError('strategy: expected an instance of the Strategy of passport-oauth-app', {
    option: 'strategy',
  });
}

const loadLogins = succeedOnce(() => import('../login/authenticate.js'));

/**
 * A Passport strategy for services with rotating refresh tokens.
 *
 * It logs users in. `apiClient(strategy)` then attaches an API client to every request, whose token never goes stale.
 * `profile.id` is the claim `sub` of the access token; for services with opaque tokens, set the option `userProfile`.
 *
 * @typeParam UserProfile The properties that the option `userProfile` adds to the profile; inferred from it.
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
export class Strategy<UserProfile extends object = object> extends Base {
  /** @throws ConfigurationError that names the wrong, unknown or missing option */
  constructor(
    options: StrategyOptions<UserProfile> & { readonly passReqToCallback: true },
    verify: VerifyWithRequest<UserProfile>,
  );
  constructor(options: StrategyOptions<UserProfile>, verify?: Verify<UserProfile>);
  constructor(options: StrategyOptions<UserProfile>, verify?: AnyVerify) {
    const settings = resolved(options, verify);
    // The base class must not hold the secret: logging the strategy would print it. Its code exchange is not used.
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
    refuseHooks(this);
    Object.defineProperty(this, RUNTIME, { value: new Runtime(settings, verify) });
    loadAhead(loadLogins);
  }

  /** Handles a request to the routes of login and callback. Passport calls it. */
  override authenticate(req: IncomingMessage, options: RouteOptions = {}): void {
    const runtime = runtimeOf(this);
    // Again, since methods may have been set on the strategy after its creation.
    refuseHooks(this);
    // A strategy passed to passport.authenticate is shared by requests. Its actions are this request's until the next await.
    const actions: PassportActions = {
      success: this.success.bind(this),
      fail: this.fail.bind(this),
      redirect: this.redirect.bind(this),
      error: this.error.bind(this),
    };
    loadLogins().then(
      ({ authenticate }) => authenticate(runtime, actions, req, options),
      (error: unknown) => actions.error(ofStrategy(error, this.name)),
    );
  }

  /**
   * Creates an API client for a grant outside of a request, for jobs and webhooks. It shares lock, cache and store with requests.
   *
   * @param grantId The value of `req.apiClient.grantId`, or of the option `grantId`.
   * @throws ConfigurationError for an invalid id, or if no token store is known: without the option `tokenStore`, the
   *   first request brings it
   */
  client(grantId: string): ApiClient {
    try {
      const { api, managers } = runtimeOf(this);
      const id = checkedGrantId(grantId);
      return createApiClient(new GrantCredentials(managers.only(), id, { mayIssue: true }), api);
    } catch (error) {
      throw ofStrategy(error, this.name);
    }
  }

  /**
   * Stores tokens from elsewhere as a grant: from another library, so that its users need not log in again, or from an
   * installation event. Resolves to `true` if it stored them.
   *
   * @param grantId The id that the option `grantId` returns for the user, or any id for `strategy.client(grantId)`. Never
   *   what a request alone claims, such as the domain in an installation event: anyone could name another's.
   * @param options With `replace: false`, a grant that the id has, or had until the service ended it, stays as it is, and
   *   the result is `false`. For imports while requests run, in any number of processes. Default: `true`.
   * @throws ConfigurationError for an invalid id or token, for an id of the application (`ERR_APPLICATION_GRANT`), or if no
   *   token store is known: see {@link client}
   * @throws TokenStoreError if the grant could not be saved
   */
  async importGrant(
    grantId: string,
    tokens: ImportedTokens,
    options: { readonly replace?: boolean | undefined } = {},
  ): Promise<boolean> {
    return await named(this.name, async () => {
      const jobs = await import('../jobs/imported-tokens.js');
      return await jobs.importGrant(runtimeOf(this), grantId, tokens, options);
    });
  }

  /**
   * Redeems an authorization code that did not arrive through the browser, such as that of an installation event, and
   * stores the grant as {@link importGrant} does. The token request has no `redirect_uri`. Resolves to what it stored, or
   * to `undefined` if it stored nothing.
   *
   * Anyone can forge such an event, with their own code and another user's organization. So derive the id from the grant,
   * which the service vouches for.
   *
   * @param grantId A function that returns the id for the new grant, whose own `grantId` is still empty; `undefined` if
   *   the grant is not to be stored. Or the id itself, if it does not depend on the event.
   * @param options With `replace: false`, a grant that the id has stays as it is: see {@link importGrant}. Default: `true`.
   * @throws TokenError if the service refuses the code, TokenResponseError, ServiceUnavailableError: nothing is stored
   * @throws ConfigurationError for an invalid id or code, in which case nothing is stored; or if no token store is known:
   *   see {@link client}
   * @throws TokenStoreError if the grant could not be saved
   */
  async importCode(
    grantId: string | ((grant: GrantSummary) => string | undefined),
    code: string,
    options: { readonly replace?: boolean | undefined } = {},
  ): Promise<GrantSummary | undefined> {
    return await named(this.name, async () => {
      const jobs = await import('../jobs/imported-tokens.js');
      return await jobs.importCode(runtimeOf(this), grantId, code, options);
    });
  }

  /**
   * Deletes grants outside of a request, such as to log a user out everywhere. A running refresh does not bring one back. An
   * unknown id is no error.
   *
   * @param grantIds One id, or a list of ids.
   * @throws ConfigurationError for an invalid id, or if no token store is known: see {@link client}
   * @throws TokenStoreError if a grant could not be deleted; the others are
   */
  async deleteGrant(grantIds: string | readonly string[]): Promise<void> {
    const ids = Array.isArray(grantIds) ? grantIds : [grantIds];
    await named(this.name, async () => {
      const checked = ids.map(checkedGrantId);
      const manager = runtimeOf(this).managers.only();
      let failed: PromiseRejectedResult | undefined;
      while (checked.length > 0) {
        const deletions = checked.splice(0, DELETIONS_AT_ONCE).map((id) => manager.remove(id, false));
        const results = await Promise.allSettled(deletions);
        failed ??= results.find((result) => result.status === 'rejected');
      }
      if (failed) throw failed.reason;
    });
  }

  /**
   * Resolves to a summary of a grant, such as for an account page, or to `undefined` if there is none. It refreshes nothing. A
   * grant that the service refused stays known for a while: `ended` is true.
   *
   * @throws ConfigurationError for an invalid id, or if no token store is known: see {@link client}
   * @throws TokenStoreError if the token store fails
   */
  async grant(grantId: string): Promise<GrantSummary | undefined> {
    return await named(this.name, () => runtimeOf(this).managers.only().summary(checkedGrantId(grantId)));
  }

  /**
   * Yields a summary of each grant of this strategy, in no order, ended ones included. It holds one page of the token store at a
   * time. Grants that are created or deleted during the iteration may be left out.
   *
   * @param options `signal` ends the iteration, which then rejects with its reason.
   * @throws ConfigurationError with the code `ERR_NO_LIST`, from the iteration, if the token store has no method `list`; or
   *   if no token store is known: see {@link client}
   * @throws TokenStoreError from the iteration, if the token store fails
   */
  async *grants(options: { readonly signal?: AbortSignal | undefined } = {}): AsyncGenerator<GrantSummary, void> {
    try {
      const { grantList, readListOptions } = await import('../jobs/grant-list.js');
      const { signal } = readListOptions(options);
      yield* grantList(runtimeOf(this).managers.only(), signal);
    } catch (error) {
      throw ofStrategy(error, this.name);
    }
  }

  /**
   * Refreshes grants that were not used for long, so that the service does not end them. Several processes may call it at once:
   * none refreshes a grant that another just refreshed. A grant whose refresh fails is kept.
   *
   * @throws ConfigurationError for a wrong option; with the code `ERR_NO_LIST` if the token store has no method `list`; or if
   *   no token store is known: see {@link client}
   * @throws TokenStoreError if the token store cannot list its grants
   * @throws ServiceUnavailableError if the strategy is closed during the run; the reason of `signal`, as it is
   */
  async keepAlive(options: KeepAliveOptions): Promise<KeepAliveResult> {
    return await named(this.name, async () => {
      const { keepAlive, readKeepAliveOptions } = await import('../jobs/keep-alive.js');
      return await keepAlive(runtimeOf(this).managers.only(), readKeepAliveOptions(options));
    });
  }

  /** Waits for running refreshes and saves, then frees the connections. Await it before the process ends. */
  close(): Promise<void> {
    return runtimeOf(this).close();
  }
}

/** Resolves the options of a strategy. @throws ConfigurationError that names the strategy if its name is a string */
function resolved(options: unknown, verify: unknown): Settings {
  try {
    if (verify !== undefined) fn('verify', verify);
    return resolveOptions(options);
  } catch (error) {
    const name: unknown = Object(options).name;
    throw ofStrategy(error, typeof name === 'string' ? name : undefined);
  }
}

/** Adds the strategy's name to the errors of its work. */
async function named<T>(strategy: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw ofStrategy(error, strategy);
  }
}

/** Methods that subclasses of OAuth2Strategy override, and what to do instead. */
const HOOKS: readonly (readonly [name: string, advice: string])[] = [
  ['authorizationParams', 'set parameters of the authorization request in the options of the strategy'],
  ['tokenParams', 'the token request has the parameters of the specification alone'],
  ['parseErrorResponse', 'a refusal of the token endpoint is a TokenError'],
  ['userProfile', 'set the option userProfile'],
];

/** Throws for an overridden method that only the base class would call. @throws ConfigurationError */
function refuseHooks(strategy: object): void {
  for (const [name, advice] of HOOKS) {
    if (Reflect.get(strategy, name) === Reflect.get(OAuth2Strategy.prototype, name)) continue;
    throw new ConfigurationError(`${name}: overriding this method of OAuth2Strategy has no effect; ${advice}`, {
      option: name,
    });
  }
}

/** Satisfies the base class, which requires a `verify`. */
function noVerify(): void {}
