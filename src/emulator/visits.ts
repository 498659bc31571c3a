import { approve, type Choice } from './approval.js';
import { refuse } from './checks.js';
import {
  type Agent,
  type AgentAnswer,
  type LoggedIn,
  type LogInOptions,
  logInByAgent,
  logInByFetch,
} from './log-in.js';
import type { Users } from './users.js';

/** What the emulator can do in a person's place, at its consent page and in an application. */
export interface Visits {
  /**
   * Does what a person does at the consent page, over HTTP: opens it, chooses a user, presses Approve or Decline.
   *
   * @param authorizeUrl - The authorization request that the application redirects to.
   * @returns The callback URL that the service redirects to.
   * @throws {EmulatorError} `ERR_EMULATOR_APPROVAL` if the service refuses the request; `ERR_EMULATOR_OPTION` if the URL is not
   *   of this service, or there is no such user.
   */
  approve(authorizeUrl: string | URL, choice?: Choice): Promise<string>;
  /**
   * Logs in through an application with a supertest agent: begins at its login path, approves, and follows all redirects.
   *
   * @returns The last response. The agent is logged in.
   * @throws {EmulatorError} `ERR_EMULATOR_APPROVAL` if the application does not redirect to the service, or the service refuses.
   */
  logIn<Answer extends AgentAnswer>(agent: Agent<Answer>, options?: LogInOptions): Promise<Answer>;
  /**
   * Logs in through an application with fetch: begins at `login`, an absolute URL here, approves, and follows all redirects.
   *
   * @returns The last response, and a fetch that is logged in.
   * @throws {EmulatorError} As with an agent.
   */
  logIn(fetch: typeof globalThis.fetch, options: LogInOptions & { readonly login: string }): Promise<LoggedIn>;
}

/** The visits of this service. @param authUrl - Its `{auth_url}`: nothing else is ever approved. */
export function visits(users: Users, authUrl: string): Visits {
  const chosen = (url: URL, { user, decline = false }: Choice) =>
    approve(url, knownUser(users, user ?? users.first()?.id), decline);
  function logIn<Answer extends AgentAnswer>(agent: Agent<Answer>, options?: LogInOptions): Promise<Answer>;
  function logIn(fetch: typeof globalThis.fetch, options: LogInOptions): Promise<LoggedIn>;
  async function logIn(
    browser: Agent<AgentAnswer> | typeof globalThis.fetch,
    { login = '/login', ...choice }: LogInOptions = {},
  ): Promise<AgentAnswer | LoggedIn> {
    const visit = (url: URL) => (isConsent(url, authUrl) ? chosen(url, choice) : undefined);
    if ('get' in browser) return logInByAgent(browser, login, visit);
    if (!URL.canParse(login)) refuse('logIn(): login', 'an absolute URL where fetch is used', login);
    return logInByFetch(browser, new URL(login), visit);
  }
  return {
    logIn,
    approve: async (authorizeUrl, choice = {}) => {
      const url = URL.canParse(String(authorizeUrl)) ? new URL(authorizeUrl) : undefined;
      if (url !== undefined && isConsent(url, authUrl)) return chosen(url, choice);
      return refuse(
        'approve(): the URL',
        `an authorization request to ${authUrl}/oauth/authorize`,
        String(authorizeUrl),
      );
    },
  };
}

// An application may call the service by another of its loopback names than `authUrl` does.
function isConsent({ protocol, hostname, port, pathname }: URL, authUrl: string): boolean {
  const service = new URL(authUrl);
  const isLoopback = hostname === service.hostname || /^(localhost|127\.0\.0\.1|\[::1\])$/.test(hostname);
  return isLoopback && protocol === service.protocol && port === service.port && pathname === '/oauth/authorize';
}

/**
 * The id, once it is known to be a user's.
 *
 * @throws {EmulatorError} `ERR_EMULATOR_OPTION` if there is no such user.
 */
export function knownUser(users: Users, id: string | undefined): string {
  const user = id === undefined ? undefined : users.find(id);
  return user?.id ?? refuse('The user', 'the id of a user of this service', id);
}
