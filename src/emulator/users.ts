import { isRecord, list, record, refuse, text } from './checks.js';

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
  /** Further claims of this user's access tokens. They override the usual ones, so a test can send hostile values. */
  readonly claims?: Readonly<Record<string, unknown>> | undefined;
  /** Further members of this user's token responses, as some services have them (a workspace, an instance URL). */
  readonly tokenFields?: Readonly<Record<string, unknown>> | undefined;
}

/** Default accounts: one without an organization, one in an enterprise organization. */
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

  find(id: string): EmulatorUser | undefined {
    return this.#byId.get(id);
  }

  first(): EmulatorUser | undefined {
    return this.#byId.values().next().value;
  }

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

  all(): IterableIterator<EmulatorUser> {
    return this.#byId.values();
  }

  /**
   * Adds an account, or replaces the one with the same id. The change shows in tokens that are issued from now on.
   *
   * @throws {EmulatorError} `ERR_EMULATOR_OPTION` if the account is malformed.
   */
  put(user: unknown, option = 'addUser()'): void {
    const checked = checkedUser(user, option);
    this.#byId.set(checked.id, checked);
  }
}

function checkedUser(value: unknown, option: string): EmulatorUser {
  const user = record(option, value, ['id', 'name', 'domain', 'projects', 'claims', 'tokenFields']);
  const object = (key: string, given: unknown) =>
    isRecord(given) ? given : refuse(`${option}.${key}`, 'an object', given);
  const { domain } = user;
  const isLabel = typeof domain === 'string' && /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/.test(domain);
  return Object.freeze({
    id: text(`${option}.id`, user.id),
    name: text(`${option}.name`, user.name),
    domain:
      domain === undefined || isLabel
        ? domain
        : refuse(`${option}.domain`, 'one DNS label in lower case, such as acme', domain),
    projects: list(`${option}.projects`, user.projects ?? []).map((project, index) =>
      object(`projects[${index}]`, project),
    ),
    claims: object('claims', user.claims ?? {}),
    tokenFields: object('tokenFields', user.tokenFields ?? {}),
  });
}
