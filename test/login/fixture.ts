import { createHmac } from 'node:crypto';
import { type IncomingMessage, ServerResponse } from 'node:http';
import { setImmediate as turn } from 'node:timers/promises';
import { promisify } from 'node:util';
import session from 'express-session';
import { memoryTokenStore } from 'passport-oauth-app';
import { onTestFinished, vi } from 'vitest';
import { type AuthenticateOptions, authenticate } from '../../src/login/authenticate.js';
import type { CallbackRequest, CallbackRoute } from '../../src/login/callback-request.js';
import { LoginReport } from '../../src/login/login-report.js';
import type { PassportActions } from '../../src/login/passport-actions.js';
import type { PendingLogin } from '../../src/login/pending-logins.js';
import type { AnyVerify } from '../../src/login/verify.js';
import { resolveOptions } from '../../src/options.js';
import { Runtime } from '../../src/runtime.js';
import { sessionContent } from '../../src/session/session.js';
import { requestOf as plainRequestOf, setCookies } from '../request/fixture.js';
import { EventLog } from '../support/event-log.js';
import { type Behaviour, type FaultyServer, json, startFaultyServer } from '../support/faulty-server.js';
import { TestClock } from '../support/test-clock.js';
import type { Handler, Req } from '../support/world.js';

export const CALLBACK_URL = 'https://app.example/callback';

/** What a strategy owns. It closes itself when the test ends. */
export function open(options: object = {}, verify?: AnyVerify): Runtime {
  const runtime = new Runtime(
    resolveOptions({
      authUrl: 'https://accounts.example',
      baseUrl: 'https://api.example',
      clientID: 'client',
      clientSecret: 'the secret of the application',
      callbackURL: CALLBACK_URL,
      scope: ['project', 'tm'],
      tokenStore: memoryTokenStore(),
      clock: new TestClock().now,
      ...options,
    }),
    verify,
  );
  onTestFinished(() => runtime.close());
  return runtime;
}

/** What a test sets of a request: `cookies` as `name=value`, and other properties as Express and Passport add them. */
export interface RequestParts {
  readonly method?: string;
  readonly url?: string;
  readonly headers?: IncomingMessage['headers'];
  readonly cookies?: readonly string[];
  readonly [property: string]: unknown;
}

/** A request as it comes from a browser. */
export function requestOf({ headers = {}, cookies = [], ...parts }: RequestParts = {}): IncomingMessage {
  const cookie = cookies.length > 0 ? { cookie: cookies.join('; ') } : {};
  return plainRequestOf({ host: 'app.example', ...cookie, ...headers }, { url: '/login', ...parts });
}

/** A request, and its response. */
export function exchangeOf(parts?: RequestParts): { readonly req: IncomingMessage; readonly res: ServerResponse } {
  const req = requestOf(parts);
  return { req, res: new ServerResponse(req) };
}

/** Name and value of a line of `Set-Cookie`. */
export const pairOf = (line = ''): string => line.split(';', 1)[0] ?? '';

/** Collects the warnings of the process until the test ends. */
export function warnings(): { readonly code: unknown; readonly message: string }[] {
  const collected: { readonly code: unknown; readonly message: string }[] = [];
  const emitWarning = vi.spyOn(process, 'emitWarning').mockImplementation((warning, options) => {
    collected.push({ code: Reflect.get(Object(options), 'code'), message: String(warning) });
  });
  onTestFinished(() => emitWarning.mockRestore());
  return collected;
}

type ExpressSession = Record<string, unknown> & session.Session;

/** Gives a request the session of express-session that its cookie names, or else a new one. */
export async function openSession(req: IncomingMessage, store: session.MemoryStore): Promise<ExpressSession> {
  const handle = session({ secret: SECRET, resave: false, saveUninitialized: false, store }) as unknown as Handler;
  await promisify(handle)(req as Req, new ServerResponse(req));
  return Reflect.get(req, 'session') as ExpressSession;
}

/** Gives a request a new session with this content, which the store has and the browser's cookie names. */
export async function addSession(
  req: IncomingMessage,
  store: session.MemoryStore,
  content: object = {},
): Promise<ExpressSession> {
  const opened = await openSession(req, store);
  Object.assign(opened, content);
  await promisify(opened.save.bind(opened))();
  const signature = createHmac('sha256', SECRET).update(opened.id).digest('base64').replace(/=+$/, '');
  req.headers.cookie = `connect.sid=${encodeURIComponent(`s:${opened.id}.${signature}`)}`;
  return opened;
}

const SECRET = 'the secret of the sessions';

/** The content of a session in the store; `undefined` if it has none. */
export async function storedSession(store: session.MemoryStore, id: unknown): Promise<object | undefined> {
  const stored = await promisify(store.get.bind(store))(String(id));
  if (!stored) return undefined;
  const { cookie: _settings, ...content } = stored;
  return content;
}

/** A callback as it has come to its route. */
export function callbackOf(
  runtime: Runtime,
  req: IncomingMessage,
  route: Partial<CallbackRoute> = {},
): CallbackRequest & { readonly events: EventLog['events'] } {
  const log = new EventLog('login');
  onTestFinished(() => log.stop());
  const usual = { callbackURL: undefined, isConnection: false, establishesSession: true, page: undefined };
  return {
    req,
    res: new ServerResponse(req),
    route: { ...usual, failureRedirect: undefined, ...route },
    popup: runtime.frames.popupOf(req),
    manager: runtime.grants.managerFor(req),
    sessionAtStart: sessionContent(req),
    report: new LoginReport('oauth-app'),
    events: log.events,
  };
}

/** What Passport was told of a request, in order. */
export type Told = [action: 'success' | 'fail' | 'redirect' | 'error', ...args: unknown[]];

/** Passport's actions, which note what they are told. */
export function noteActions(told: Told[]): PassportActions {
  const note =
    (action: Told[0]) =>
    (...args: unknown[]) =>
      void told.push([action, ...args]);
  return { success: note('success'), fail: note('fail'), redirect: note('redirect'), error: note('error') };
}

/** A request to a route of `passport.authenticate`. */
export async function visit(
  runtime: Runtime,
  parts: RequestParts = {},
  options: AuthenticateOptions = {},
): Promise<{ readonly req: IncomingMessage; readonly res: ServerResponse; readonly told: Told[] }> {
  const { req, res } = exchangeOf({ session: {}, ...parts });
  // As Express links them.
  Reflect.set(req, 'res', res);
  const told: Told[] = [];
  await authenticate(runtime, noteActions(told), req, options);
  return { req, res, told };
}

/** Begins a login. Returns its state, and its cookie as the browser sends it. */
export function beginLogin(
  runtime: Runtime,
  changes: Partial<PendingLogin> = {},
): { readonly state: string; readonly cookies: string[] } {
  const usual = { redirectUri: CALLBACK_URL, returnTo: undefined, isConnection: false, isSilent: false, userMark: '' };
  const { state, cookies } = runtime.pendingLogins.begin(requestOf(), { ...usual, ...changes }, false);
  return { state, cookies: cookies.map(pairOf) };
}

/** Starts a token endpoint, which closes itself when the test ends. It answers with tokens of all scopes. */
export async function startTokenEndpoint(): Promise<FaultyServer> {
  const service = await startFaultyServer();
  onTestFinished(() => service.close());
  service.always(tokenAnswer());
  return service;
}

/** The answer of a token endpoint. */
export function tokenAnswer(fields: object = {}): Behaviour {
  const usual = { access_token: 'access', token_type: 'bearer', expires_in: 3_600, refresh_token: 'refresh' };
  return json({ ...usual, scope: 'project tm', ...fields });
}

/** An access token with this `sub`. */
export const accessTokenOf = (sub: string): string =>
  `x.${Buffer.from(JSON.stringify({ sub })).toString('base64url')}.x`;

/** The cookies of this package that a response sets and ends, by what they are for. */
export function cookiesOf(res: ServerResponse): { readonly set: string[]; readonly ended: string[] } {
  const names = (isEnd: boolean) =>
    setCookies(res)
      .filter((line) => line.includes('; Max-Age=0;') === isEnd)
      .map((line) => /^(?:__Host-)?oauth-app\.([\w-]+)\./.exec(line)?.[1] ?? line);
  return { set: names(false), ended: names(true) };
}

/** Turns of the event loop within which all ends that is in memory. */
const MOST_TURNS = 200;

/** Settles like a promise of what is in memory. Rejects if nobody fulfils it. */
export async function settled<T>(promise: Promise<T>): Promise<T> {
  const late = async (): Promise<never> => {
    for (let count = 0; count < MOST_TURNS; count++) await turn();
    throw new Error('Nobody has fulfilled the promise');
  };
  return await Promise.race([promise, late()]);
}

/** Waits until the assertion holds of what is in memory. */
export async function soon(assertion: () => unknown): Promise<void> {
  for (let count = 1; ; count++) {
    try {
      await assertion();
      return;
    } catch (error) {
      if (count === MOST_TURNS) throw error;
      await turn();
    }
  }
}
