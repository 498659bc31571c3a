import { choice, integer, isRecord, list, record, refuse, text } from './checks.js';
import type { Secrets } from './sources.js';

/**
 * A registered OAuth application.
 *
 * @see RFC 6749, 2
 */
export interface Application {
  readonly clientID: string;
  readonly clientSecret: string;
  /** Display name on the consent page. */
  readonly name: string;
  /** Compared character by character with `redirect_uri`. */
  readonly redirectUrls: readonly string[];
  /** The tenant at whose host it is known. Default: none, it is known at the host of the service. */
  readonly tenant?: string;
}

/** The applications that one host knows. */
export interface Clients {
  get(clientID: string): Application | undefined;
}

/** Data that registers an application. Everything but the redirect URLs is generated if left out. */
export interface Registration {
  readonly clientID?: string | undefined;
  readonly clientSecret?: string | undefined;
  readonly name?: string | undefined;
  /** Absolute, without a fragment. At least one. */
  readonly redirectUrls: readonly string[];
  /** One of the option `tenants`. Default: none. */
  readonly tenant?: string | undefined;
}

/** Default application. */
export const sampleApplication: Application = {
  clientID: 'sample-client-id',
  clientSecret: 'sample-client-secret',
  name: 'Sample application',
  redirectUrls: ['http://localhost:3000/callback'],
};

/** Registered applications. */
export class Applications {
  readonly #byId = new Map<string, Application>();
  /** By client ID, in the order of their registration. */
  readonly byId: ReadonlyMap<string, Application> = this.#byId;
  readonly #secrets: Secrets;
  readonly #tenants: readonly string[];

  constructor(secrets: Secrets, tenants: readonly string[]) {
    this.#secrets = secrets;
    this.#tenants = tenants;
  }

  /** Returns the applications of a tenant, or those of the service itself. */
  at(tenant: string | undefined): Clients {
    return {
      get: (clientID) => {
        const application = this.#byId.get(clientID);
        return application?.tenant === tenant ? application : undefined;
      },
    };
  }

  /** Returns the first application of a tenant. */
  firstAt(tenant: string): Application | undefined {
    return [...this.#byId.values()].find((application) => application.tenant === tenant);
  }

  /** Adds the redirect URLs of an application from an earlier start. Its secret does not replace one that is set now. */
  restore(application: unknown): void {
    const { clientSecret, ...registration } = checkedRegistration(application, 'state', this.#tenants);
    const isKnown = registration.clientID !== undefined && this.#byId.has(registration.clientID);
    this.register(isKnown ? registration : { ...registration, clientSecret }, 'state');
  }

  /**
   * Registers a new application, or adds redirect URLs to a known one, and returns it.
   *
   * @throws {EmulatorError} `ERR_EMULATOR_OPTION` if the registration is malformed, or contradicts a known application's secret.
   */
  register(registration: unknown, option = 'register()'): Application {
    const given = checkedRegistration(registration, option, this.#tenants);
    const known = given.clientID === undefined ? undefined : this.#byId.get(given.clientID);
    const application = known === undefined ? this.#generated(given) : extended(known, given, option);
    this.#byId.set(application.clientID, application);
    return application;
  }

  #generated(given: Registration): Application {
    const clientID = given.clientID ?? `client-${this.#secrets.make().slice(0, 12)}`;
    return Object.freeze({
      clientID,
      clientSecret: given.clientSecret ?? this.#secrets.make(),
      name: given.name ?? clientID,
      redirectUrls: Object.freeze([...new Set(given.redirectUrls)]),
      ...(given.tenant === undefined ? {} : { tenant: given.tenant }),
    });
  }
}

function extended(known: Application, given: Registration, option: string): Application {
  if (given.clientSecret !== undefined && given.clientSecret !== known.clientSecret) {
    refuse(`${option}.clientSecret`, 'left out or the one that this client ID has already', given.clientSecret);
  }
  if (given.tenant !== undefined && given.tenant !== known.tenant) {
    refuse(`${option}.tenant`, 'left out or the one that this client ID has already', given.tenant);
  }
  return Object.freeze({
    ...known,
    name: given.name ?? known.name,
    redirectUrls: Object.freeze([...new Set([...known.redirectUrls, ...given.redirectUrls])]),
  });
}

function checkedRegistration(registration: unknown, option: string, tenants: readonly string[]): Registration {
  const given = record(option, registration, ['clientID', 'clientSecret', 'name', 'redirectUrls', 'tenant']);
  const optional = (key: string) => (given[key] === undefined ? undefined : text(`${option}.${key}`, given[key]));
  const urls = list(`${option}.redirectUrls`, given.redirectUrls, { min: 1 });
  return {
    clientID: optional('clientID'),
    clientSecret: optional('clientSecret'),
    name: optional('name'),
    tenant: given.tenant === undefined ? undefined : choice(`${option}.tenant`, given.tenant, tenants),
    redirectUrls: urls.map((url, index) => redirectUrl(`${option}.redirectUrls[${index}]`, url)),
  };
}

// RFC 6749, 3.1.2, forbids a fragment. A Location header allows ASCII only. A script or data URL would run in the service's page.
function redirectUrl(option: string, value: unknown): string {
  const url = text(option, value);
  if (!isRedirectUrl(url))
    refuse(option, 'an absolute URL in ASCII without a fragment, such as http://localhost:3000/callback', value);
  integer(`${option} (length)`, url.length, 1, 2000);
  return url;
}

/** Returns true for a URL that can be registered as a redirect URL. */
export function isRedirectUrl(url: string): boolean {
  const harmful = /^(javascript|data|vbscript|blob|about|file):$/;
  return /^[\x21-\x7e]+$/.test(url) && !url.includes('#') && URL.canParse(url) && !harmful.test(new URL(url).protocol);
}

/** A project as `/api/v2/projects` returns it: any JSON object. */
export type Project = Readonly<Record<string, unknown>>;

/** An account of the service that can approve applications. */
export interface EmulatorUser {
  /** The `sub` of the access tokens. */
  readonly id: string;
  readonly name: string;
  /** Domain of the user's enterprise organization: one DNS label in lower case. Default: no organization. */
  readonly domain?: string | undefined;
  /** Projects that `/api/v2/projects` lists for this user; none by default. */
  readonly projects?: readonly Project[] | undefined;
  /** Further claims of this user's access tokens. They override the default ones, so a test can send hostile values. */
  readonly claims?: Readonly<Record<string, unknown>> | undefined;
  /** Further members of this user's token responses, as some services have them (a workspace, an instance URL). */
  readonly tokenFields?: Readonly<Record<string, unknown>> | undefined;
}

/** Default accounts: one personal, one in an organization. */
export const sampleUsers: readonly EmulatorUser[] = [
  {
    id: '1',
    name: 'Ada Ferrant',
    projects: [
      { id: 11, name: 'Pocket Garden', description: 'Mobile app for balcony growers', progress: 86 },
      { id: 12, name: 'Harbour Museum', description: 'Audio guide in six languages', progress: 41 },
      { id: 13, name: 'Night Train', description: 'Booking site', progress: 100 },
    ],
  },
  {
    id: '2',
    name: 'Ben Okafor',
    domain: 'acme',
    projects: [
      { id: 21, name: 'Acme Storefront', description: 'Web shop', progress: 64 },
      { id: 22, name: 'Acme Help Centre', description: 'Articles for customers', progress: 17 },
    ],
  },
];

/** Accounts of the service, in the order in which the consent page lists them. */
export class Users {
  readonly #byId = new Map<string, EmulatorUser>();
  readonly byId: ReadonlyMap<string, EmulatorUser> = this.#byId;

  /**
   * Returns the user with this id.
   *
   * @throws {EmulatorError} `ERR_EMULATOR_OPTION` if no user has it.
   */
  require(id: string | undefined): EmulatorUser {
    const user = id === undefined ? undefined : this.#byId.get(id);
    return user ?? refuse('The user', 'the id of a user of this service', id);
  }

  /** Replaces all accounts. */
  replaceAll(users: readonly EmulatorUser[]): void {
    this.#byId.clear();
    for (const user of users) this.#byId.set(user.id, user);
  }

  /**
   * Adds an account, or replaces the one with the same id. The change applies to tokens issued from then on.
   *
   * @throws {EmulatorError} `ERR_EMULATOR_OPTION` if the account is malformed.
   */
  put(user: unknown, option = 'addUser()'): void {
    const checked = checkedUser(user, option);
    this.#byId.set(checked.id, checked);
  }
}

/** Returns true for one DNS label in lower case. */
export function isLabel(text: string): boolean {
  return /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/.test(text);
}

function checkedUser(value: unknown, option: string): EmulatorUser {
  const user = record(option, value, ['id', 'name', 'domain', 'projects', 'claims', 'tokenFields']);
  const object = (key: string, given: unknown) =>
    isRecord(given) ? given : refuse(`${option}.${key}`, 'an object', given);
  const { domain } = user;
  return Object.freeze({
    id: text(`${option}.id`, user.id),
    name: text(`${option}.name`, user.name),
    domain:
      domain === undefined || (typeof domain === 'string' && isLabel(domain))
        ? domain
        : refuse(`${option}.domain`, 'one DNS label in lower case, such as acme', domain),
    projects: list(`${option}.projects`, user.projects ?? []).map((project, index) =>
      object(`projects[${index}]`, project),
    ),
    claims: object('claims', user.claims ?? {}),
    tokenFields: object('tokenFields', user.tokenFields ?? {}),
  });
}
