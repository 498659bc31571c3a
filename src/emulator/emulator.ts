import { Api } from './api.js';
import { ApiRoutes } from './api-routes.js';
import { type Application, Applications, type Registration } from './applications.js';
import { serveAuthorization } from './authorization-endpoint.js';
import { refuse } from './checks.js';
import { Clock } from './clock.js';
import { Codes } from './codes.js';
import { type Endpoint, type Fault, Faults } from './faults.js';
import { Grants } from './grants.js';
import { type Listener, listen } from './listener.js';
import { createVisits, type Visits } from './log-in.js';
import { type EmulatorOptions, type ResolvedOptions, resolveOptions } from './options.js';
import { RequestLog, type ServiceRequest } from './request-log.js';
import { Secrets } from './secrets.js';
import { requestListener, type ServerSetting } from './server.js';
import { serveToken } from './token-endpoint.js';
import { type EmulatorUser, Users } from './users.js';

/** Addresses and credentials of the service, to be spread into the options of a strategy. */
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
  /** Every request received, oldest first, including refused and failed ones. Empty it with `requests.length = 0`. */
  readonly requests: ServiceRequest[];

  /** The registered applications, the first one first. */
  readonly applications: readonly Application[];
  /** The accounts, in the order in which the consent page lists them. */
  readonly users: readonly EmulatorUser[];

  /**
   * Registers another application, or further redirect URLs for a known `clientID`, and returns the application.
   *
   * @throws {EmulatorError} `ERR_EMULATOR_OPTION` if the registration is malformed or contradicts a known one.
   */
  register(registration: Registration): Application;
  /**
   * Adds an account, or replaces the one with the same id. The change shows in tokens that are issued from then on.
   *
   * @throws {EmulatorError} `ERR_EMULATOR_OPTION` if the account is malformed.
   */
  addUser(user: EmulatorUser): void;
  /**
   * Makes the next request of an endpoint fail, or the next `times` ones. Several faults are applied in order.
   *
   * @returns A function that removes the fault, as far as it has not been applied yet.
   * @throws {EmulatorError} `ERR_EMULATOR_OPTION` if the endpoint or the fault is malformed.
   */
  fail(endpoint: Endpoint, fault?: Fault): () => void;
  /** Refuses all access tokens issued so far from now on, although their `exp` is in the future. */
  expireAccessTokens(): void;
  /**
   * Ends all grants of a user: access and refresh tokens are refused from now on.
   *
   * @throws {EmulatorError} `ERR_EMULATOR_OPTION` if no user has the id.
   */
  revoke(userId: string): void;
  /** Moves the time of the service forward by some seconds. */
  advance(seconds: number): void;
  /** Stops at once and ends all connections and delays. Later calls have no effect. */
  close(): Promise<void>;
}

/**
 * Starts an emulator of the whole service on this computer's loopback.
 *
 * @param options - All optional. Default: a free port, a sample application and two sample users.
 * @throws {EmulatorError} `ERR_EMULATOR_OPTION` for a wrong option, `ERR_EMULATOR_PORT` for a port that cannot be used,
 *   `ERR_EMULATOR_PRODUCTION` under `NODE_ENV=production`.
 * @example
 * const service = await startEmulator();
 * service.register({ clientID: service.options.clientID, redirectUrls: ['http://localhost:8080/callback'] });
 * passport.use(new Strategy({ ...service.options, callbackURL: 'http://localhost:8080/callback', scope: ['project'] }));
 */
export async function startEmulator(options: EmulatorOptions = {}): Promise<Emulator> {
  const resolved = resolveOptions(options, process.env.NODE_ENV);
  const service = createService(resolved);
  const listener = await listen(requestListener(service), resolved);
  return createEmulator(service, addressesOf(resolved, listener), listener);
}

type Service = ReturnType<typeof createService>;

function createService(options: ResolvedOptions) {
  const clock = new Clock(options.clock);
  const secrets = new Secrets(options.seed);
  const applications = new Applications(secrets);
  const registered = options.applications.map((one, index) => applications.register(one, `applications[${index}]`));
  const users = new Users();
  for (const [index, user] of options.users.entries()) users.put(user, `users[${index}]`);
  const codes = new Codes(secrets, clock, options.codeLifetime);
  const { accessTokenLifetime, refreshTokenReuse, revokeOnCodeReuse, concurrency, scopes } = options;
  const grants = new Grants({ secrets, clock, users, accessTokenLifetime, refreshTokenReuse });
  const api = new Api({ grants, routes: new ApiRoutes(options.routes), concurrency });
  const endpoints: ServerSetting['endpoints'] = {
    authorize: (request) => ({
      serve: async () => serveAuthorization(request, { applications, users, codes, scopes }),
    }),
    token: (request) => ({
      serve: async () => serveToken(request, { applications, codes, grants, revokeOnCodeReuse }),
    }),
    api: (request) => api.admit(request),
  };
  const requests = new RequestLog(options.keepRequests);
  const faults = new Faults();
  return { clock, users, applications, first: registered[0], grants, endpoints, faults, requests, log: options.log };
}

type Addresses = Pick<ServiceOptions, 'authUrl' | 'baseUrl' | 'enterpriseBaseUrl'>;

// Not `localhost` by default: browsers ignore the port when they send cookies, so an application on localhost:3000 would send its session
// cookie to a service on localhost:4000, although the two are different sites in production.
function addressesOf({ host, https }: ResolvedOptions, listener: Listener): Addresses {
  const scheme = https === undefined ? 'http' : 'https';
  const { origin, port } = new URL(`${scheme}://${host.includes(':') ? `[${host}]` : host}:${listener.port}`);
  const enterpriseBaseUrl = `${scheme}://{domain}.api.localhost${port === '' ? '' : `:${port}`}`;
  return { authUrl: origin, baseUrl: origin, enterpriseBaseUrl };
}

function createEmulator(service: Service, addresses: Addresses, listener: Listener): Emulator {
  const { applications, users, grants, faults, clock, requests } = service;
  const { clientID = '', clientSecret = '' } = service.first ?? {};
  let closed: Promise<void> | undefined;
  return {
    ...addresses,
    options: Object.freeze({ ...addresses, clientID, clientSecret }),
    requests: requests.requests,
    get applications() {
      return [...applications.all()];
    },
    get users() {
      return [...users.all()];
    },
    register: (registration) => applications.register(registration),
    addUser: (user) => users.put(user),
    fail: (endpoint, fault) => faults.add(endpoint, fault),
    expireAccessTokens: () => grants.expireAccessTokens(),
    revoke: (userId) => grants.endAllOf(users.require(userId).id),
    advance: (seconds) => {
      if (!Number.isFinite(seconds)) refuse('advance(): seconds', 'a number', seconds);
      clock.advance(seconds);
    },
    ...createVisits(users, addresses.authUrl),
    close: () => {
      faults.endDelays();
      closed ??= listener.close();
      return closed;
    },
  };
}
