import { approve, type Choice } from './approval.js';
import { EmulatorError, refuse } from './checks.js';
import { CookieJar, cookieFetch } from './cookie-fetch.js';
import type { Users } from './users.js';

/** The part of a supertest agent that a login uses. It keeps cookies, and does not follow redirects itself. */
export interface Agent<Answer extends AgentAnswer> {
  get(path: string): PromiseLike<Answer>;
}

/** The part of a supertest request that sets headers. */
interface HeaderSetter {
  set(headers: Readonly<Record<string, string>>): unknown;
}

/** The part of a supertest response that a login uses. */
export interface AgentAnswer {
  readonly status: number;
  readonly headers: unknown;
}

/** How to log in through an application. */
export interface LogInOptions extends Choice {
  /** Start of the application's login: a path for an agent (default `/login`), an absolute URL for fetch. */
  readonly login?: string | undefined;
}

/** Result of a login with fetch. */
export interface LoggedIn {
  /** The response at the end of all redirects. */
  readonly response: Response;
  /** The same fetch, which now sends the cookies of this login and keeps further ones. */
  readonly fetch: typeof globalThis.fetch;
  /** Those cookies as a `Cookie` header for the application. */
  readonly cookie: string;
}

/** Members that act in a person's place, on the consent page and in an application. */
export interface Visits {
  /**
   * Opens the consent page over HTTP, chooses a user, presses Approve or Decline.
   *
   * @param authorizeUrl - The authorization request that the application redirects to.
   * @returns The callback URL that the service redirects to.
   * @throws {EmulatorError} `ERR_EMULATOR_APPROVAL` if the service refuses the request; `ERR_EMULATOR_OPTION` if the URL does not
   *   belong to this service, or no user has the id.
   */
  approve(authorizeUrl: string | URL, choice?: Choice): Promise<string>;
  /**
   * Logs in through an application with a supertest agent: starts at its login path, approves, and follows all redirects. The
   * callback is requested from the agent's application, whatever its host is.
   *
   * @returns The last response. The agent is logged in.
   * @throws {EmulatorError} `ERR_EMULATOR_APPROVAL` if the application does not redirect to the service, or the service refuses.
   */
  logIn<Answer extends AgentAnswer>(agent: Agent<Answer>, options?: LogInOptions): Promise<Answer>;
  /**
   * Logs in through an application with fetch: starts at `login`, an absolute URL here, approves, and follows all redirects.
   *
   * @returns The last response, and a fetch that is logged in.
   * @throws {EmulatorError} As with an agent.
   */
  logIn(fetch: typeof globalThis.fetch, options: LogInOptions & { readonly login: string }): Promise<LoggedIn>;
}

const maxRedirects = 10;

/** Headers of a browser that opens a page: an application may answer other requests without a redirect to its login. */
const pageHeaders = { accept: 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8' };

/** Creates the visits of a service. @param authorizationUrl - Its authorization endpoint. No other one is ever approved. */
export function createVisits(users: Users, authorizationUrl: string): Visits {
  const decide = (url: URL, { user, decline = false }: Choice) =>
    approve(url, users.require(user ?? users.first()?.id).id, decline);
  function logIn<Answer extends AgentAnswer>(agent: Agent<Answer>, options?: LogInOptions): Promise<Answer>;
  function logIn(fetch: typeof globalThis.fetch, options: LogInOptions): Promise<LoggedIn>;
  async function logIn(
    browser: Agent<AgentAnswer> | typeof globalThis.fetch,
    { login = '/login', ...choice }: LogInOptions = {},
  ): Promise<AgentAnswer | LoggedIn> {
    const approveAt = (url: URL) => (isAuthorizationUrl(url, authorizationUrl) ? decide(url, choice) : undefined);
    if ('get' in browser) {
      const visit = async ({ pathname, search }: URL) => {
        const request = browser.get(pathname + search);
        if (setsHeaders(request)) request.set(pageHeaders);
        const answer = await request;
        return { answer, status: answer.status, location: locationOf(answer.headers) };
      };
      return followRedirects(new URL(login, 'http://localhost'), visit, approveAt);
    }
    if (!URL.canParse(login)) refuse('logIn(): login', 'an absolute URL where fetch is used', login);
    const jar = new CookieJar();
    const fetch = cookieFetch(browser, jar);
    const visit = async (url: URL) => {
      const answer = await fetch(url, { redirect: 'manual', headers: pageHeaders });
      return { answer, status: answer.status, location: answer.headers.get('location') ?? undefined };
    };
    const response = await followRedirects(new URL(login), visit, approveAt);
    return { response, fetch, cookie: jar.header(new URL(login)) };
  }
  return {
    logIn,
    approve: async (authorizeUrl, choice = {}) => {
      const url = URL.canParse(String(authorizeUrl)) ? new URL(authorizeUrl) : undefined;
      if (url !== undefined && isAuthorizationUrl(url, authorizationUrl)) return decide(url, choice);
      const expected = `an authorization request to ${authorizationUrl}`;
      return refuse('approve(): the URL', expected, String(authorizeUrl));
    },
  };
}

// An application may use another loopback name of the service than its address does.
function isAuthorizationUrl({ protocol, hostname, port, pathname }: URL, authorizationUrl: string): boolean {
  const service = new URL(authorizationUrl);
  const isLoopback = hostname === service.hostname || /^(localhost|127\.0\.0\.1|\[::1\])$/.test(hostname);
  return isLoopback && protocol === service.protocol && port === service.port && pathname === service.pathname;
}

interface Visited<Answer> {
  readonly answer: Answer;
  readonly status: number;
  readonly location: string | undefined;
}

async function followRedirects<Answer>(
  start: URL,
  visit: (url: URL) => Promise<Visited<Answer>>,
  approveAt: (url: URL) => Promise<string> | undefined,
): Promise<Answer> {
  let url = start;
  let approved = false;
  for (let redirects = 0; redirects <= maxRedirects; redirects += 1) {
    const { answer, status, location } = await visit(url);
    if (status < 300 || status > 399 || location === undefined) {
      if (approved) return answer;
      throw notLoggedIn(`${url.pathname} answered with ${status} instead of a redirect to the service`);
    }
    const next = new URL(location, url);
    const callback = await approveAt(next);
    approved ||= callback !== undefined;
    url = callback === undefined ? next : new URL(callback);
  }
  throw notLoggedIn(`it redirected more than ${maxRedirects} times, at last to ${url.pathname}`);
}

function setsHeaders(request: object): request is HeaderSetter {
  return 'set' in request && typeof request.set === 'function';
}

function locationOf(headers: unknown): string | undefined {
  if (typeof headers !== 'object' || headers === null || !('location' in headers)) return undefined;
  return typeof headers.location === 'string' ? headers.location : undefined;
}

function notLoggedIn(reason: string): EmulatorError {
  return new EmulatorError(`The application did not finish its login: ${reason}.`, { code: 'ERR_EMULATOR_APPROVAL' });
}
