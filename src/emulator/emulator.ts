import { Api, ApiRoutes, type EmulatorRoute } from './api.js';
import { serveAuthorization } from './authorization-endpoint.js';
import { refuse } from './checks.js';
import { Codes } from './codes.js';
import { Consents } from './consents.js';
import { controlEndpoint, EMBED_PATH, foreignHost } from './control-endpoint.js';
import { type Application, Applications, type EmulatorUser, type Registration, Users } from './directory.js';
import { Embedding, type EmbedOptions } from './embedding.js';
import { type Endpoint, type Fault, Faults } from './faults.js';
import { Grants } from './grants.js';
import {
  addressedOrganization,
  addressedTenant,
  foreignAddressFinder,
  isOwnHost,
  type Listener,
  listen,
} from './hosts.js';
import { type Identity, identityOf } from './identities.js';
import { type Installation, Installations, type InstallOptions, type Uninstallation } from './installations.js';
import { createVisits, type Visits } from './log-in.js';
import { type IncomingRequest, refusal } from './messages.js';
import { openApiRoutes } from './openapi-routes.js';
import { type EmulatorOptions, type ResolvedOptions, resolveOptions } from './options.js';
import { type ProfileOptions, profileOptions } from './profiles.js';

import { serveRevocation } from './revocation-endpoint.js';
import { RequestLog, requestListener, type ServerSetting, type ServiceRequest } from './server.js';
import { Clock, Secrets } from './sources.js';
import { Controls, StateFile } from './state.js';
import { statusPage } from './status-page.js';
import { serveToken } from './token-endpoint.js';

/** Key of the check for addresses of other services, in the options: it is there too where others are spread over them. */
const EMULATOR = Symbol.for('passport-oauth-app.emulator');

/** Addresses and credentials of the service, and the options of its profile, to be spread into the options of a strategy. */
export interface ServiceOptions extends ProfileOptions {
  readonly authUrl: string;
  readonly baseUrl: string;
  readonly enterpriseBaseUrl: string;
  readonly clientID: string;
  readonly clientSecret: string;
}

/** Addresses and credentials of a tenant, and the options of the service's profile. */
export type TenantOptions = Omit<ServiceOptions, 'enterpriseBaseUrl'>;

/** A running emulator of the service. */
export interface Emulator extends Visits {
  /** Base address of the authorization server. */
  readonly authUrl: string;
  /** Base address of the API. */
  readonly baseUrl: string;
  /** Base address of the API of an organization, with `{domain}` for the organization domain. */
  readonly enterpriseBaseUrl: string;
  /** The addresses, and the credentials of the first application. */
  readonly options: ServiceOptions;
  /**
   * Returns the options of a strategy for a tenant: its addresses, and the credentials of its application.
   *
   * @throws {EmulatorError} `ERR_EMULATOR_OPTION` if it is none of the option `tenants`.
   */
  optionsOf(tenant: string): TenantOptions;
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
   * Adds an account, or replaces the one with the same id. The change applies to tokens issued from then on.
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
  /** Expires all access tokens issued so far, whatever their `exp`. */
  expireAccessTokens(): void;
  /**
   * Ends all grants of a user, with their access and refresh tokens.
   *
   * @throws {EmulatorError} `ERR_EMULATOR_OPTION` if no user has the id.
   */
  revoke(userId: string): void;
  /**
   * Returns the address of a page of the service that shows an application in a frame, at another site than the application. The
   * address in the frame gets a token (JWT, HS256) that the secret of the first application has signed, as Crowdin Apps do. Browsers
   * resolve its host; Node's `fetch` gets the same page at `authUrl`, or with `lookup`.
   *
   * @param url - Page of the application.
   * @throws {EmulatorError} `ERR_EMULATOR_OPTION` if the URL is not of a page, or no user has the id.
   */
  embed(url: string | URL, options?: EmbedOptions): string;
  /**
   * Installs an application in the organization of a user, and returns what the Installed event of the service carries.
   *
   * @throws {EmulatorError} `ERR_EMULATOR_OPTION` if the user or the application is unknown.
   */
  install(options?: InstallOptions): Installation;
  /**
   * Removes an installation, ends its grants, and returns what the Uninstall event carries.
   *
   * @throws {EmulatorError} `ERR_EMULATOR_OPTION` if there is no such installation.
   */
  uninstall(options?: Pick<InstallOptions, 'appId' | 'userId'>): Uninstallation;
  /** Changes the option `concurrency`: most API requests of one account at once; `undefined` for no limit. */
  limit(concurrency: number | undefined): void;
  /** Moves the time of the service forward by some seconds. */
  advance(seconds: number): void;
  /**
   * Returns to the state after the start: no faults, recorded requests, codes and grants, the first users and limit, the real time.
   * Applications stay registered.
   */
  reset(): void;
  /** Stops immediately and closes all connections. Further calls have no effect. */
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
  const { routes: given, profile } = resolved;
  const routes = typeof given === 'string' ? openApiRoutes(given, profile.apiPath) : given;
  const service = createService(resolved, routes, identityOf(options.profile));
  const listener = await listen(requestListener(service.server), resolved);
  return createEmulator(service, resolved, listener);
}

interface Service {
  readonly controls: Controls;
  readonly server: ServerSetting;
  readonly stateFile: StateFile | undefined;
  readonly embedding: Embedding;
  readonly first: Application | undefined;
}

function createService(options: ResolvedOptions, routes: readonly EmulatorRoute[], identity: Identity): Service {
  const { profile, allowRemote, codeReuse, scopes } = options;
  const tenants = new Set(options.tenants);
  const { crossOriginOpenerPolicy: openerPolicy, consent } = options;
  const { accessTokenLifetime = profile.accessTokenLifetime } = options;
  const { refreshTokenReuse = profile.refreshTokenReuse } = options;
  const { refreshTokenLifetime = profile.refreshTokenLifetime } = options;
  const { plainHostForOrganizations = profile.plainHostForOrganizations } = options;
  const clock = new Clock(options.clock);
  const secrets = new Secrets(options.seed);
  const applications = new Applications(secrets, options.tenants);
  const registered = options.applications.map((one, index) => applications.register(one, `applications[${index}]`));
  for (const tenant of tenants) {
    const redirectUrls = registered[0]?.redirectUrls.map((url) => url.replaceAll(/%7Btenant%7D|\{tenant\}/gi, tenant));
    if (applications.firstAt(tenant) === undefined)
      applications.register({
        clientID: `${tenant}-client-id`,
        clientSecret: `${tenant}-client-secret`,
        name: tenant,
        redirectUrls,
        tenant,
      });
  }
  const users = new Users();
  for (const [index, user] of options.users.entries()) users.put(user, `users[${index}]`);
  const codes = new Codes(secrets, clock, options.codeLifetime);
  const grants = new Grants({
    secrets,
    clock,
    users,
    accessTokenLifetime,
    refreshTokenLifetime,
    refreshTokenReuse,
    profile,
    tokenFields: identity.tokenFields,
    originOf: (clientID) => controls.originOf(applications.byId.get(clientID)?.tenant),
  });
  const faults = new Faults(() => secrets.random(), options.latency, options.tenants);
  const requests = new RequestLog(options.keepRequests, options.keepBodyBytes);
  const consents = new Consents();
  const installations = new Installations({ applications, users, codes, secrets });
  const limits = { concurrency: options.concurrency };
  const controls: Controls = new Controls({
    limits,
    applications,
    users,
    codes,
    consents,
    grants,
    installations,
    faults,
    clock,
    requests,
  });
  const hosts = { host: options.host, tenants };
  const tenantOf = (request: IncomingRequest) => {
    const addressed = addressedTenant(request, hosts);
    return typeof addressed === 'object' ? addressed.tenant : undefined;
  };
  const clientsAt = (request: IncomingRequest) => applications.at(tenantOf(request));
  const application = () => applications.byId.get(registered[0]?.clientID ?? '');
  const embedding = new Embedding({ users, consents, clock, secrets, application });
  const api = new Api({
    grants,
    routes: new ApiRoutes([...routes, ...(identity.routes ?? [])]),
    limits,
    allowRemote,
    clientsAt,
    profile: { ...profile, plainHostForOrganizations },
  });
  const server: ServerSetting = {
    route: (request) => {
      if (addressedTenant(request, hosts) === 'unknown') return refusal(404, 'not_found', 'There is no such tenant.');
      const endpoint = endpointOf(request, options);
      // Other hosts are for clients. Pages are for browsers, which could be lured there.
      const isAllowed = isOwnHost(request, options) || (allowRemote && endpoint !== 'authorize');
      return isAllowed ? endpoint : foreignHost(request);
    },
    endpoints: {
      authorize: (request) => ({
        serve: async () => {
          const remembers = consent === 'remember';
          const clients = clientsAt(request);
          const origin = controls.originOf(undefined);
          const setting = { clients, users, codes, consents, remembers, scopes, profile, origin };
          const reply = serveAuthorization(request, setting);
          const policy = openerPolicy === undefined ? {} : { 'cross-origin-opener-policy': openerPolicy };
          return { ...reply, headers: { ...reply.headers, ...policy } };
        },
      }),
      token: (request) => ({
        serve: async () =>
          serveToken(request, { clients: clientsAt(request), codes, grants, installations, codeReuse, profile }),
      }),
      revoke: (request) => ({
        serve: async () => serveRevocation(request, { clients: clientsAt(request), grants, profile }),
      }),
      api: (request) => api.admit(request),
    },
    control: controlEndpoint({
      controls,
      hosts: options,
      page: ({ host }) => statusPage(controls, host),
      embedding: (id) => embedding.page(id),
    }),
    faults,
    tenantOf,
    requests,
    bodyLimit: options.bodyLimit,
    finished: (entry) => {
      options.log?.(entry);
      controls.changed();
    },
  };
  const stateFile = options.state === undefined ? undefined : new StateFile(options.state, secrets, controls);
  return { controls, server, stateFile, embedding, first: registered[0] };
}

// The hosts of enterprise organizations are API hosts only (service.md, "Addresses"). Everything below the first segment of the API's path
// is the API, so that another version is an error of the API.
function endpointOf(
  request: Parameters<ServerSetting['route']>[0],
  { profile, allowRemote }: ResolvedOptions,
): Endpoint | undefined {
  const { organization, path } = addressedOrganization(request, { allowRemote });
  if (organization === undefined && path === profile.authorizationPath) return 'authorize';
  if (organization === undefined && path === profile.tokenPath) return 'token';
  if (organization === undefined && path === (profile.revocationPath ?? '/oauth/revoke')) return 'revoke';
  const [, root] = profile.apiPath.split('/');
  return root === undefined || path.startsWith(`/${root}/`) ? 'api' : undefined;
}

interface Place {
  readonly addresses: Pick<ServiceOptions, 'authUrl' | 'baseUrl' | 'enterpriseBaseUrl'>;
  /** Returns the origin of a tenant, or of the service itself. */
  readonly originOf: (tenant: string | undefined) => string;
}

// Not `localhost` by default: browsers ignore the port when they send cookies, so an application on localhost:3000 would send its session
// cookie to a service on localhost:4000, although the two are different sites in production.
function addressesOf({ host, https, domainHosts }: ResolvedOptions, listener: Listener): Place {
  const scheme = https === undefined ? 'http' : 'https';
  const named = /^(0\.0\.0\.0|::)$/.test(host) ? '127.0.0.1' : host;
  const { origin, hostname, port } = new URL(
    `${scheme}://${named.includes(':') ? `[${named}]` : named}:${listener.port}`,
  );
  const parent = /^[\d.]+$|^\[/.test(hostname) ? 'localhost' : hostname;
  const suffix = `${parent}${port === '' ? '' : `:${port}`}`;
  const enterpriseBaseUrl =
    domainHosts === 'path' ? `${origin}/organizations/{domain}` : `${scheme}://{domain}.api.${suffix}`;
  const originOf = (tenant: string | undefined) => (tenant === undefined ? origin : `${scheme}://${tenant}.${suffix}`);
  return { addresses: { authUrl: origin, baseUrl: origin, enterpriseBaseUrl }, originOf };
}

// Another site than localhost and 127.0.0.1, where applications under test are, and one where browsers keep `Secure` cookies without TLS.
function hostPageOrigin(authUrl: string): string {
  const { protocol, hostname, port } = new URL(authUrl);
  const isPlainLoopback = protocol === 'http:' && /^(localhost|127(\.\d{1,3}){3}|\[::1\])$/.test(hostname);
  return isPlainLoopback ? `http://service.localhost:${port}` : authUrl;
}

function createEmulator(
  { controls, embedding, first, stateFile }: Service,
  options: ResolvedOptions,
  listener: Listener,
): Emulator {
  const { applications, users, faults, requests } = controls.state;
  const { clientID = '', clientSecret = '' } = first ?? {};
  const { profile } = options;
  const { addresses, originOf } = addressesOf(options, listener);
  const optionsOf = (tenant: string): TenantOptions => {
    const application = applications.firstAt(tenant) ?? refuse('optionsOf(): the tenant', 'one of tenants', tenant);
    const origin = originOf(tenant);
    const { clientID, clientSecret } = application;
    const own = { authUrl: origin, baseUrl: origin, clientID, clientSecret };
    return Object.freeze({ ...own, ...profileOptions(profile), [EMULATOR]: foreignAddressFinder(origin) });
  };
  controls.originOf = originOf;
  controls.tenants = () => options.tenants.map((tenant) => ({ tenant, options: optionsOf(tenant) }));
  controls.baseUrlOf = (domain) =>
    domain === undefined ? addresses.baseUrl : addresses.enterpriseBaseUrl.replace('{domain}', domain);
  let closed: Promise<void> | undefined;
  return {
    ...addresses,
    options: Object.freeze({
      ...addresses,
      clientID,
      clientSecret,
      ...profileOptions(profile),
      [EMULATOR]: foreignAddressFinder(addresses.authUrl),
    }),
    optionsOf,
    requests: requests.requests,
    get applications() {
      return [...applications.byId.values()];
    },
    get users() {
      return [...users.byId.values()];
    },
    register: (registration) => controls.register(registration),
    addUser: (user) => controls.addUser(user),
    fail: (endpoint, fault) => {
      const id = controls.fail(endpoint, fault);
      return () => void controls.removeFault(id);
    },
    expireAccessTokens: () => controls.expireAccessTokens(),
    revoke: (userId) => void controls.revoke(userId),
    embed: (url, given) => `${hostPageOrigin(addresses.authUrl)}${EMBED_PATH}${embedding.add(url, given)}`,
    install: (given = {}) => controls.install(given),
    uninstall: (given = {}) => controls.uninstall(given),
    limit: (concurrency) => controls.limit(concurrency),
    advance: (seconds) => controls.advance(seconds),
    reset: () => controls.reset(),
    ...createVisits(users, `${addresses.authUrl}${profile.authorizationPath}`),
    close: () => {
      faults.endDelays();
      closed ??= listener.close().then(() => stateFile?.flush());
      return closed;
    },
  };
}
