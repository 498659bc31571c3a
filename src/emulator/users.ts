import { isRecord, list, record, refuse, text } from './checks.js';

/** A project as `/api/v2/projects` lists it: any JSON object. */
export type Project = Readonly<Record<string, unknown>>;

/** An account of the service that can approve applications. */
export interface EmulatorUser {
  /** The `sub` of the access tokens. */
  readonly id: string;
  readonly name: string;
  /** Domain of the user's enterprise organization: one DNS label in lower case. Left out: no organization. */
  readonly domain?: string | undefined;
  /** What `/api/v2/projects` lists for this user. None unless given. */
  readonly projects?: readonly Project[] | undefined;
  /** Further claims of this user's access tokens; they replace the usual ones, so that a test can send hostile values. */
  readonly claims?: Readonly<Record<string, unknown>> | undefined;
}

/** The accounts that stand ready when none are named: one without an organization, one in an enterprise organization. */
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

/** The accounts of the service, in the order in which the consent page offers them. */
export class Users {
  readonly #byId = new Map<string, EmulatorUser>();

  find(id: string): EmulatorUser | undefined {
    return this.#byId.get(id);
  }

  first(): EmulatorUser | undefined {
    return this.#byId.values().next().value;
  }

  all(): IterableIterator<EmulatorUser> {
    return this.#byId.values();
  }

  get size(): number {
    return this.#byId.size;
  }

  /**
   * Adds an account, or replaces the one with the same id; tokens issued from now on say so.
   *
   * @throws {EmulatorError} `ERR_EMULATOR_OPTION` if the account is malformed.
   */
  put(user: unknown, option = 'addUser()'): void {
    const checked = checkedUser(user, option);
    this.#byId.set(checked.id, checked);
  }
}

function checkedUser(value: unknown, option: string): EmulatorUser {
  const user = record(option, value, ['id', 'name', 'domain', 'projects', 'claims']);
  return Object.freeze({
    id: text(`${option}.id`, user.id),
    name: text(`${option}.name`, user.name),
    domain: user.domain === undefined ? undefined : label(`${option}.domain`, user.domain),
    projects: list(`${option}.projects`, user.projects ?? []).map((project, index) =>
      object(`${option}.projects[${index}]`, project),
    ),
    claims: object(`${option}.claims`, user.claims ?? {}),
  });
}

function label(option: string, value: unknown): string {
  const fits = typeof value === 'string' && /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/.test(value);
  return fits ? value : refuse(option, 'one DNS label in lower case, such as acme', value);
}

function object(option: string, value: unknown): Readonly<Record<string, unknown>> {
  return isRecord(value) ? value : refuse(option, 'an object', value);
}
