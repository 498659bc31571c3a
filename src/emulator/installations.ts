import { choice, record, refuse, text } from './checks.js';
import type { Codes } from './codes.js';
import type { Applications, EmulatorUser, Users } from './directory.js';
import type { Secrets } from './sources.js';

/** How an installed application gets its tokens. */
export type InstalledAuthentication = 'crowdin_app' | 'crowdin_agent' | 'authorization_code';

/** The application to install, and the user who installs it. */
export interface InstallOptions {
  /** The user who installs it. Default: the first one. */
  readonly userId?: string | undefined;
  /** Default: `sample-app`. */
  readonly appId?: string | undefined;
  /** Default: the first registered application. */
  readonly clientID?: string | undefined;
  /** Decides whether the event has `agentId` or `code`. Default: it has both. */
  readonly authentication?: InstalledAuthentication | undefined;
}

/** The Uninstall event of the service. */
export interface Uninstallation {
  readonly appId: string;
  readonly appSecret: string;
  readonly clientId: string;
  readonly organizationId: number;
  /** Of an enterprise organization. */
  readonly domain?: string;
  /** Base address of the API of the organization. */
  readonly baseUrl: string;
}

/** The Installed event of the service. */
export interface Installation extends Uninstallation {
  readonly userId: string;
  /** For the grant type `crowdin_agent`. */
  readonly agentId?: string;
  /** Authorization code of the user who installed the application: to be redeemed without a `redirect_uri`. */
  readonly code?: string;
}

/** The user that an installed application acts for, or the reason for a refusal. */
export type Installed = { readonly userId: string } | { readonly refusal: string };

const authentications = ['crowdin_app', 'crowdin_agent', 'authorization_code'] as const;

/** Dependencies of `Installations`. */
export interface InstallationsSetting {
  readonly applications: Applications;
  readonly users: Users;
  readonly codes: Codes;
  readonly secrets: Secrets;
}

/** Applications that are installed in an organization, or in the account of a user who is in none. */
export class Installations {
  /** By application and organization, in the order of installation. */
  readonly #installed = new Map<string, Installation>();
  readonly #setting: InstallationsSetting;
  #organizations = 0;

  constructor(setting: InstallationsSetting) {
    this.#setting = setting;
  }

  /**
   * Installs an application in the organization of a user, in place of an earlier installation, and returns the Installed event.
   *
   * @param baseUrlOf - Returns the base address of the API of an organization.
   * @throws {EmulatorError} `ERR_EMULATOR_OPTION` if the user or the application is unknown.
   */
  install(options: unknown, baseUrlOf: (domain: string | undefined) => string): Installation {
    const { applications, users, codes, secrets } = this.#setting;
    const given = record('install()', options, ['userId', 'appId', 'clientID', 'authentication']);
    const [firstUser] = users.byId.keys();
    const user = users.require(given.userId === undefined ? firstUser : text('install().userId', given.userId));
    const [firstClient] = applications.byId.keys();
    const clientId = text('install().clientID', given.clientID ?? firstClient);
    if (!applications.byId.has(clientId)) refuse('install().clientID', 'that of a registered application', clientId);
    const appId = text('install().appId', given.appId ?? 'sample-app');
    const { authentication } = given;
    if (authentication !== undefined) choice('install().authentication', authentication, authentications);
    const has = (kind: InstalledAuthentication) => authentication === undefined || authentication === kind;
    const approval = { clientID: clientId, redirectUri: undefined, userId: user.id, scopes: [], challenge: undefined };
    const key = keyOf(appId, user);
    this.#organizations += 1;
    const installation: Installation = {
      appId,
      appSecret: secrets.make(),
      clientId,
      userId: user.id,
      ...(has('crowdin_agent') ? { agentId: `${this.#organizations}` } : {}),
      organizationId: this.#installed.get(key)?.organizationId ?? this.#organizations,
      ...(user.domain === undefined ? {} : { domain: user.domain }),
      baseUrl: baseUrlOf(user.domain),
      ...(has('authorization_code') ? { code: codes.issue(approval) } : {}),
    };
    this.#installed.set(key, installation);
    return installation;
  }

  /**
   * Removes an installation, and returns the Uninstall event.
   *
   * @param options - `appId`, and `userId` for that of another user's organization than the first one's.
   * @throws {EmulatorError} `ERR_EMULATOR_OPTION` if there is no such installation.
   */
  uninstall(options: unknown): { readonly event: Uninstallation; readonly userId: string } {
    const given = record('uninstall()', options, ['appId', 'userId']);
    const appId = text('uninstall().appId', given.appId ?? 'sample-app');
    const { users } = this.#setting;
    const [first] = users.byId.keys();
    const key = keyOf(appId, users.require(given.userId === undefined ? first : String(given.userId)));
    const installation = this.#installed.get(key);
    if (!installation)
      refuse('uninstall().appId', "that of an application installed in the user's organization", appId);
    this.#installed.delete(key);
    const { userId, agentId: _agent, code: _code, ...event } = installation;
    return { event, userId };
  }

  /** Returns the user that an installed application acts for. @param fields - Those of the token request. */
  actor(fields: Readonly<Record<string, unknown>>, clientID: string): Installed {
    const { app_id: appId, app_secret: appSecret, user_id: userId, agent_id: agentId, domain } = fields;
    const user = this.#setting.users.byId.get(String(userId));
    const installation = user && this.#installed.get(keyOf(String(appId), user));
    if (!user || installation?.appSecret !== appSecret || installation?.clientId !== clientID) {
      return {
        refusal: 'No application with this app_id and app_secret is installed in the organization of this user.',
      };
    }
    if ((domain ?? '') !== (user.domain ?? '')) return { refusal: 'domain is not that of the organization.' };
    if (fields.grant_type === 'crowdin_agent' && String(agentId) !== installation.agentId)
      return { refusal: 'agent_id is not that of the installation.' };
    return { userId: user.id };
  }

  /** Removes all installations. */
  clear(): void {
    this.#installed.clear();
  }

  /** Returns all installations, to be restored in another process. */
  snapshot(): readonly (readonly [key: string, installation: Installation])[] {
    return [...this.#installed];
  }

  restore(installed: ReturnType<Installations['snapshot']>): void {
    for (const [key, installation] of installed) this.#installed.set(key, installation);
    this.#organizations = installed.length;
  }
}

function keyOf(appId: string, { id, domain }: EmulatorUser): string {
  return JSON.stringify(domain === undefined ? [appId, null, id] : [appId, domain]);
}
