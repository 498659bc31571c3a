import type { Choice } from './approval.js';
import { keepingCookies } from './cookie-fetch.js';
import { CookieJar } from './cookie-jar.js';
import { EmulatorError } from './emulator-error.js';

/** As much of a supertest agent as is needed: it keeps cookies, and does not follow redirects by itself. */
export interface Agent<Answer extends AgentAnswer> {
  get(path: string): PromiseLike<Answer>;
}

/** As much of a supertest response as is needed. */
export interface AgentAnswer {
  readonly status: number;
  readonly headers: unknown;
}

/** How to log in through an application. */
export interface LogInOptions extends Choice {
  /** Where the application's login begins: a path for an agent (`/login` unless given), an absolute URL for fetch. */
  readonly login?: string | undefined;
}

/** What a login by fetch leaves behind. */
export interface LoggedIn {
  /** The answer at the end of all redirects. */
  readonly response: Response;
  /** The same fetch, now with the cookies of this login; it goes on keeping them. */
  readonly fetch: typeof globalThis.fetch;
  /** Those cookies as a `Cookie` header for the application. */
  readonly cookie: string;
}

/** Makes of an authorization request the callback URL; `undefined` for a URL that is none of this service. */
export type Approve = (url: URL) => Promise<string> | undefined;

const maxRedirects = 10;

/**
 * Walks through a login with a supertest agent. Whatever the callback's host is, it is asked of the agent's application.
 *
 * @throws {EmulatorError} `ERR_EMULATOR_APPROVAL` if the application never redirects to the service, or without end.
 */
export async function logInByAgent<Answer extends AgentAnswer>(
  agent: Agent<Answer>,
  login: string,
  approve: Approve,
): Promise<Answer> {
  const ask = async ({ pathname, search }: URL) => {
    const answer = await agent.get(pathname + search);
    return { answer, status: answer.status, location: locationOf(answer.headers) };
  };
  return walk(new URL(login, 'http://localhost'), ask, approve);
}

/**
 * Walks through a login with fetch, keeping cookies for it.
 *
 * @param login - Absolute.
 * @throws {EmulatorError} `ERR_EMULATOR_APPROVAL` if the application never redirects to the service, or without end.
 */
export async function logInByFetch(fetch: typeof globalThis.fetch, login: URL, approve: Approve): Promise<LoggedIn> {
  const jar = new CookieJar();
  const withCookies = keepingCookies(fetch, jar);
  const ask = async (url: URL) => {
    const answer = await withCookies(url, { redirect: 'manual' });
    return { answer, status: answer.status, location: answer.headers.get('location') ?? undefined };
  };
  const response = await walk(login, ask, approve);
  return { response, fetch: withCookies, cookie: jar.header(login) };
}

interface Step<Answer> {
  readonly answer: Answer;
  readonly status: number;
  readonly location: string | undefined;
}

async function walk<Answer>(start: URL, ask: (url: URL) => Promise<Step<Answer>>, approve: Approve): Promise<Answer> {
  let url = start;
  let approved = false;
  for (let redirects = 0; redirects <= maxRedirects; redirects += 1) {
    const { answer, status, location } = await ask(url);
    if (status < 300 || status > 399 || location === undefined) {
      if (approved) return answer;
      throw notLoggedIn(`${url.pathname} answered with ${status} instead of a redirect to the service`);
    }
    const next = new URL(location, url);
    const callback = await approve(next);
    approved ||= callback !== undefined;
    url = callback === undefined ? next : new URL(callback);
  }
  throw notLoggedIn(`it redirected more than ${maxRedirects} times, at last to ${url.pathname}`);
}

function locationOf(headers: unknown): string | undefined {
  if (typeof headers !== 'object' || headers === null || !('location' in headers)) return undefined;
  return typeof headers.location === 'string' ? headers.location : undefined;
}

function notLoggedIn(what: string): EmulatorError {
  return new EmulatorError(`The application did not come to an end with its login: ${what}.`, {
    code: 'ERR_EMULATOR_APPROVAL',
  });
}
