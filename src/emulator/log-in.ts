import { type IncomingHttpHeaders, request as plainRequest, type RequestOptions } from 'node:http';
import { request as tlsRequest } from 'node:https';
import { ASK_HEADER } from './authorization-endpoint.js';
import { EmulatorError, isRecord, list, record, refuse } from './checks.js';
import type { Users } from './directory.js';
import { lookup } from './hosts.js';

/** The part of a supertest agent that a login uses. It keeps cookies, and does not follow redirects itself. */
export interface Agent<Answer extends AgentAnswer> {
  get(path: string): PromiseLike<Answer>;
}

/** The part of a supertest response that a login uses. */
export interface AgentAnswer {
  readonly status: number;
  readonly headers: unknown;
}

/** Options of a login through an application. */
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

/** Members that act as a user, on the consent page and in an application. */
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

/** Checks the options of a visit before any request is made. @throws {EmulatorError} `ERR_EMULATOR_OPTION` */
function checked<T extends Choice>(option: string, given: T, ...more: readonly string[]): T {
  record(option, given, [...more, 'user', 'decline', 'scope']);
  if (given.scope !== undefined) list('scope', given.scope);
  return given;
}

/** Headers of a browser that opens a page: an application may answer other requests without a redirect to its login. */
const pageHeaders = { accept: 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8' };

/** Creates the visits of a service. @param authorizationUrl - Its authorization endpoint. No other one is ever approved. */
export function createVisits(users: Users, authorizationUrl: string): Visits {
  const decide = (url: URL, { user, decline = false, scope }: Choice) => {
    const [first] = users.byId.keys();
    return approve(url, users.require(user ?? first).id, decline, scope);
  };
  function logIn<Answer extends AgentAnswer>(agent: Agent<Answer>, options?: LogInOptions): Promise<Answer>;
  function logIn(fetch: typeof globalThis.fetch, options: LogInOptions): Promise<LoggedIn>;
  async function logIn(
    browser: Agent<AgentAnswer> | typeof globalThis.fetch,
    options: LogInOptions = {},
  ): Promise<AgentAnswer | LoggedIn> {
    const refuseBrowser = () =>
      refuse('logIn(): the first argument', 'a supertest agent, such as request.agent(app), or fetch', browser);
    const { login = '/login', ...choice } = checked('logIn(): the options', options, 'login');
    if (typeof browser !== 'function' && !isRecord(browser)) refuseBrowser();
    const approveAt = (url: URL) => (isAuthorizationUrl(url, authorizationUrl) ? decide(url, choice) : undefined);
    if ('get' in browser) {
      const visit = async ({ pathname, search }: URL) => {
        const request = browser.get(pathname + search);
        // An Express application has a `get` too.
        if (!isRecord(request) || !('then' in request)) refuseBrowser();
        if ('set' in request && typeof request.set === 'function') request.set(pageHeaders);
        const answer = await request;
        const { location }: { readonly location?: unknown } = answer.headers ?? {};
        return { answer, status: answer.status, location: typeof location === 'string' ? location : undefined };
      };
      return followRedirects(new URL(login, 'http://localhost'), visit, approveAt);
    }
    if (!URL.canParse(login)) refuse('logIn(): login', 'an absolute URL where fetch is used', login);
    const jar = new CookieJar();
    const fetch = cookieFetch(browser, jar);
    const visit = async (url: URL) => {
      const answer = await fetch(url, { redirect: 'manual', headers: pageHeaders }).catch((cause: unknown) => {
        throw notLoggedIn(unreachable(url, login), cause);
      });
      return { answer, status: answer.status, location: answer.headers.get('location') ?? undefined };
    };
    const response = await followRedirects(new URL(login), visit, approveAt);
    return { response, fetch, cookie: jar.header(new URL(login)) };
  }
  return {
    logIn,
    approve: async (authorizeUrl, choice = {}) => {
      checked('approve(): the choice', choice);
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
  const isLoopback = hostname === service.hostname || /^((.+\.)?localhost|127\.0\.0\.1|\[::1\])$/.test(hostname);
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

function unreachable({ origin, pathname }: URL, login: string): string {
  const began = new URL(login).origin;
  if (origin === began) return `${origin} cannot be reached. Does it listen there?`;
  return (
    `the login began at ${began} and leads to ${origin}${pathname}, which cannot be reached. Set callbackURL to an address at ` +
    `${began}, and register it with service.register()`
  );
}

function notLoggedIn(reason: string, cause?: unknown): EmulatorError {
  const message = `The application did not finish its login: ${reason}${/[.?]$/.test(reason) ? '' : '.'}`;
  return new EmulatorError(message, { code: 'ERR_EMULATOR_APPROVAL', cause });
}

/** A user's decision on the consent page. */
export interface Choice {
  /** Id of the user; the first one by default. */
  readonly user?: string | undefined;
  /** Presses Decline instead of Approve. */
  readonly decline?: boolean | undefined;
  /** The scopes that are granted, of those that the application asks for. Default: all. */
  readonly scope?: readonly string[] | undefined;
}

interface PageResponse {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
}

/**
 * Opens the consent page, chooses a user and presses a button. Both requests go over HTTP, so they are recorded, and faults affect them.
 *
 * @param url - The authorization request that the application redirects to.
 * @param user - Id of the user.
 * @returns The URL that the service then redirects to: the application's callback.
 * @throws {EmulatorError} `ERR_EMULATOR_APPROVAL` if the service shows an error page instead.
 */
export async function approve(url: URL, user: string, decline: boolean, scope?: readonly string[]): Promise<string> {
  const opened = await send(url, 'GET', undefined, { [ASK_HEADER]: '1' });
  if (opened.headers.location !== undefined) return opened.headers.location;
  if (opened.status !== 200) throw notApproved(opened);
  const form = new URLSearchParams(url.search);
  form.set('user', user);
  form.set('decision', decline ? 'decline' : 'approve');
  if (scope) form.set('choice', 'scopes');
  for (const name of scope ?? []) form.append('granted', name);
  const decided = await send(new URL(url.pathname, url), 'POST', form.toString());
  if (decided.headers.location === undefined) throw notApproved(decided);
  return decided.headers.location;
}

function send(
  url: URL,
  method: string,
  form?: string,
  headers: Readonly<Record<string, string>> = { 'content-type': 'application/x-www-form-urlencoded' },
): Promise<PageResponse> {
  // The certificate is the test's, and the request never leaves this computer.
  const options: RequestOptions & { readonly rejectUnauthorized: boolean } = {
    method,
    headers,
    agent: false,
    lookup,
    rejectUnauthorized: false,
  };
  return new Promise((resolve, reject) => {
    const request = url.protocol === 'https:' ? tlsRequest(url, options) : plainRequest(url, options);
    request.on('error', reject);
    request.on('response', (response) => {
      const { statusCode = 0, headers } = response;
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('error', reject);
      response.on('end', () => resolve({ status: statusCode, headers, text: Buffer.concat(chunks).toString() }));
    });
    request.end(form);
  });
}

function notApproved({ status, text }: PageResponse): EmulatorError {
  const reason = /<p>([^<]*)<\/p>/.exec(text)?.[1] ?? 'The response has no reason.';
  return new EmulatorError(
    `The service answered the authorization request with ${status} instead of a redirect. ${reason}`,
    { code: 'ERR_EMULATOR_APPROVAL' },
  );
}

/** Stores cookies by host, as far as a test needs it: names, values and removal. Paths and ports are ignored. */
export class CookieJar {
  readonly #byHost = new Map<string, Map<string, string>>();

  /** Returns the `Cookie` header for a request to this URL; empty if there is none. */
  header(url: URL): string {
    return [...(this.#byHost.get(url.hostname) ?? [])].map(([name, value]) => `${name}=${value}`).join('; ');
  }

  /** Stores the `Set-Cookie` headers of a response from this URL. */
  store(url: URL, setCookies: readonly string[]): void {
    const cookies = this.#byHost.get(url.hostname) ?? new Map<string, string>();
    this.#byHost.set(url.hostname, cookies);
    for (const setCookie of setCookies) {
      const [pair = ''] = setCookie.split(';', 1);
      const mark = pair.indexOf('=');
      const name = pair.slice(0, mark).trim();
      if (isRemoval(setCookie)) cookies.delete(name);
      else cookies.set(name, pair.slice(mark + 1).trim());
    }
  }
}

function isRemoval(setCookie: string): boolean {
  if (/;\s*max-age=(0|-\d+)\s*(;|$)/i.test(setCookie)) return true;
  const [, expires] = /;\s*expires=([^;]+)/i.exec(setCookie) ?? [];
  return expires !== undefined && !/;\s*max-age=/i.test(setCookie) && Date.parse(expires) <= Date.now();
}

/**
 * Returns a fetch that keeps cookies. It follows redirects itself, because fetch would neither see the cookies on the way nor send them.
 * It never sends a body twice: the 307 or 308 to a request with a body is returned.
 */
export function cookieFetch(fetch: typeof globalThis.fetch, jar: CookieJar): typeof globalThis.fetch {
  return async function fetchWithCookies(input, init) {
    let request = new Request(input, init);
    const { redirect } = request;
    for (let redirects = 0; ; redirects += 1) {
      const url = new URL(request.url);
      const cookie = jar.header(url);
      if (cookie !== '') request.headers.set('cookie', cookie);
      const response = await fetch(request, { redirect: redirect === 'follow' ? 'manual' : redirect });
      jar.store(url, response.headers.getSetCookie());
      const next = redirect === 'follow' ? redirectedRequest(request, response) : undefined;
      if (next === undefined) return response;
      if (redirects === 20) throw new TypeError('The application redirected more than 20 times.');
      request = next;
    }
  };
}

function redirectedRequest(request: Request, { status, headers }: Response): Request | undefined {
  const location = headers.get('location');
  if (location === null || ![301, 302, 303, 307, 308].includes(status)) return undefined;
  const keepsMethod = status > 303;
  if (keepsMethod && request.body !== null) return undefined;
  const url = new URL(location, request.url);
  const kept = new Headers(request.headers);
  for (const name of ['cookie', 'content-type', 'content-length']) kept.delete(name);
  if (url.origin !== new URL(request.url).origin) kept.delete('authorization');
  const method = keepsMethod || request.method === 'HEAD' ? request.method : 'GET';
  return new Request(url, { method, headers: kept, signal: request.signal });
}
