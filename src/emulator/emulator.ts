import { Api } from './api.js';
import { ApiRoutes } from './api-routes.js';
import { type Application, Applications, type Registration } from './applications.js';
import { refuse } from './checks.js';
import { Clock } from './clock.js';
import { Codes } from './codes.js';
import { type Endpoint, type Fault, Faults } from './faults.js';
import { Grants } from './grants.js';
import { type Listener, listen } from './listener.js';
import { type EmulatorOptions, type ResolvedOptions, resolveOptions } from './options.js';
import { Pauses } from './pauses.js';
import { RequestLog, type ServiceRequest } from './request-log.js';
import { sampleRoutes } from './sample-routes.js';
import { Secrets } from './secrets.js';
import { requestListener } from './server.js';
import { type EmulatorUser, Users } from './users.js';
import { knownUser, type Visits, visits } from './visits.js';

/** What an application has to know of the service: to be spread into the options of a strategy. */
export interface ServiceOptions {
  readonly authUrl: string;
  readonly baseUrl: string;
  readonly enterpriseBaseUrl: string;
  readonly clientID: string;
  readonly clientSecret: string;
}

/** A running emulator of the service. */
export interface Emulator extends Visits {
  /** `{auth_url}` of service.md. */
  readonly authUrl: string;
  /** `{base_url}` of service.md. */
  readonly baseUrl: string;
  /** `{enterprise_base_url}` of service.md, with `{domain}` for the organization domain. */
  readonly enterpriseBaseUrl: string;
  /** The addresses, and the credentials of the first application. */
  readonly options: ServiceOptions;
  /** Every request received, the oldest first: also those that were refused or struck by a fault. Empty it with `requests.length = 0`. */
  readonly requests: ServiceRequest[];

  /** The registered applications, the first one first. */
  readonly applications: readonly Application[];
  /** The accounts, in the order in which the consent page offers them. */
  readonly users: readonly EmulatorUser[];

  /**
   * Registers one more application, or more redirect URLs for the known `clientID`, and returns it as it is then.
   *
   * @throws {EmulatorError} `ERR_EMULATOR_OPTION` if the registration is malformed or contradicts a known one.
   */
  register(registration: Registration): Application;
  /**
   * Adds an account, or replaces the one with the same id; tokens that are issued from then on say so.
   *
   * @throws {EmulatorError} `ERR_EMULATOR_OPTION` if the account is malformed.
   */
  addUser(user: EmulatorUser): void;
  /**
   * Lets the next request of an endpoint fail, or the next `times` ones. Several faults strike one after the other.
   *
   * @returns Takes the fault back, as far as it has not struck yet.
   * @throws {EmulatorError} `ERR_EMULATOR_OPTION` if the endpoint or the fault is not understood.
   */
  fail(endpoint: Endpoint, fault?: Fault): () => void;
  /** From now on refuses all access tokens issued so far, although their `exp` lies ahead. */
  expireAccessTokens(): void;
  /**
   * Ends all grants of a user: access and refresh tokens are refused from now on.
   *
   * @throws {EmulatorError} `ERR_EMULATOR_OPTION` if there is no such user.
   */
  revoke(userId: string): void;
  /** Lets so many seconds pass for the service. */
  advance(seconds: number): void;
  /** Ends at once, with all connections and whatever still waits. Later calls change nothing. */
  close(): Promise<void>;
}

/**
 * Starts an emulator of the whole service on this computer's loopback.
 *
 * @param options - All optional: a free port, a sample application and two sample users unless told otherwise.
 * @throws {EmulatorError} `ERR_EMULATOR_OPTION` for a wrong option, `ERR_EMULATOR_PORT` for a port that cannot be used,
 *   `ERR_EMULATOR_PRODUCTION` under `NODE_ENV=production`.
 * @example
 * const service = await startEmulator();
 * service.register({ clientID: service.options.clientID, redirectUrls: ['http://localhost:8080/callback'] });
 * passport.use(new Strategy({ ...service.options, callbackURL: 'http://localhost:8080/callback', scope: ['project'] }));
 */
export async function startEmulator(options: EmulatorOptions = {}): Promise<Emulator> {
  return startFrom(options);
}

/**
 * Starts an emulator from options of which nothing is known yet.
 *
 * @throws {EmulatorError} As `startEmulator`.
 */
export async function startFrom(options: unknown): Promise<Emulator> {
  const resolved = resolveOptions(options, process.env.NODE_ENV);
  const parts = assembled(resolved);
  const listener = await listen(requestListener({ ...parts, log: resolved.log }), resolved);
  return emulator(parts, addressesOf(resolved, listener), listener);
}

type Parts = ReturnType<typeof assembled>;

function assembled(options: ResolvedOptions) {
  const clock = new Clock(options.clock);
  const secrets = new Secrets(options.seed);
  const applications = new Applications(secrets);
  const registered = options.applications.map((one, index) => applications.register(one, `applications[${index}]`));
  const users = new Users();
  for (const [index, user] of options.users.entries()) users.put(user, `users[${index}]`);
  const codes = new Codes(secrets, clock, options.codeLifetime);
  const { accessTokenLifetime, refreshTokenReuse, revokeOnCodeReuse, concurrency, scopes } = options;
  const grants = new Grants({ secrets, clock, users, accessTokenLifetime, refreshTokenReuse });
  return {
    clock,
    users,
    applications,
    first: registered[0],
    grants,
    authorize: { applications, users, codes, scopes },
    token: { applications, codes, grants, revokeOnCodeReuse },
    api: new Api({ grants, routes: new ApiRoutes([...options.routes, ...sampleRoutes]), concurrency }),
    faults: new Faults(),
    pauses: new Pauses(),
    requests: new RequestLog(options.keepRequests),
  };
}

type Addresses = Pick<ServiceOptions, 'authUrl' | 'baseUrl' | 'enterpriseBaseUrl'>;

// Not `localhost` by default: browsers do not tell ports apart when they send cookies, so an application on localhost:3000 would
// hand its session cookie to a service on localhost:4000, and nobody would notice that the two are different sites in real life.
function addressesOf({ host, https }: ResolvedOptions, listener: Listener): Addresses {
  const scheme = https === undefined ? 'http' : 'https';
  const { origin, port } = new URL(`${scheme}://${host.includes(':') ? `[${host}]` : host}:${listener.port}`);
  const enterpriseBaseUrl = `${scheme}://{domain}.api.localhost${port === '' ? '' : `:${port}`}`;
  return { authUrl: origin, baseUrl: origin, enterpriseBaseUrl };
}

function emulator(parts: Parts, addresses: Addresses, listener: Listener): Emulator {
  const { clientID = '', clientSecret = '' } = parts.first ?? {};
  let closed: Promise<void> | undefined;
  return {
    ...addresses,
    options: Object.freeze({ ...addresses, clientID, clientSecret }),
    requests: parts.requests.requests,
    get applications() {
      return [...parts.applications.all()];
    },
    get users() {
      return [...parts.users.all()];
    },
    register: (registration) => parts.applications.register(registration),
    addUser: (user) => parts.users.put(user),
    fail: (endpoint, fault) => parts.faults.add(endpoint, fault),
    expireAccessTokens: () => parts.grants.expireAccessTokens(),
    revoke: (userId) => parts.grants.endAllOf(knownUser(parts.users, userId)),
    advance: (seconds) => advance(parts.clock, seconds),
    ...visits(parts.users, addresses.authUrl),
    close: () => {
      parts.pauses.giveUp();
      closed ??= listener.close();
      return closed;
    },
  };
}

function advance(clock: Clock, seconds: number): void {
  if (!Number.isFinite(seconds)) refuse('advance(): seconds', 'a number', seconds);
  clock.advance(seconds);
}
