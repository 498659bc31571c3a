import { type Emulator, type EmulatorOptions, startEmulator } from 'passport-oauth-app/emulator';
import { beforeEach, onTestFinished } from 'vitest';
import { type RawAnswer, type RawOptions, rawRequest } from '../support/raw-request.js';
import { standIn } from '../support/stand-in.js';

const [currentService, setService] = standIn<Emulator>('emulator');

/** The emulator that the running test has started last. The functions below talk to it. */
export const service: Emulator = currentService;

/** Starts an emulator, which ends with the test. */
export async function startService(options: EmulatorOptions = {}): Promise<Emulator> {
  const started = await startEmulator(options);
  onTestFinished(() => started.close());
  setService(started);
  return started;
}

/** Starts one before each test of the file or group. */
export function startServiceForEachTest(): void {
  beforeEach(() => startService().then(() => {}));
}

/** The shape that every refusal has. */
export interface Refusal {
  readonly error: string;
  readonly error_description: string;
}

export interface Tokens {
  readonly access_token: string;
  readonly token_type: string;
  readonly expires_in: number;
  readonly refresh_token: string;
}

export const callback = 'http://localhost:3000/callback';

/** The address of an authorization request; `undefined` leaves a parameter out. */
export function authorizeUrl(changes: Record<string, string | undefined> = {}, at: Emulator = service): string {
  const parameters = {
    client_id: at.options.clientID,
    redirect_uri: callback,
    response_type: 'code',
    scope: 'project tm',
    state: 'some-state',
    ...changes,
  };
  const told = Object.entries(parameters).filter((entry): entry is [string, string] => entry[1] !== undefined);
  return `${at.authUrl}/oauth/authorize?${new URLSearchParams(told)}`;
}

/** Reads a consent page's form as any client could, and presses one of its buttons. */
export async function decide(
  consentUrl: string,
  { user, button = 'Approve' }: { user?: string; button?: string } = {},
): Promise<Response> {
  const page = await (await fetch(consentUrl)).text();
  const form = /<form[^>]*>/.exec(page)?.[0] ?? '';
  const fields = new URLSearchParams();
  for (const [tag] of page.matchAll(/<input[^>]*>/g)) {
    const isSent = tag.includes('type="hidden"') || (user === undefined && tag.includes(' checked'));
    if (isSent) fields.append(attribute(tag, 'name'), attribute(tag, 'value'));
  }
  if (user !== undefined) fields.append('user', user);
  const [, tag = ''] = new RegExp(`(<button[^>]*>)${button}</button>`).exec(page) ?? [];
  fields.append(attribute(tag, 'name'), attribute(tag, 'value'));
  return fetch(new URL(attribute(form, 'action'), consentUrl), { method: 'POST', body: fields, redirect: 'manual' });
}

/** The URL that an answer redirects to. */
export function target(response: Response): URL {
  return new URL(response.headers.get('location') ?? 'missing:');
}

/** Approves as a user and returns the code. */
export async function codeFor(user = '1', changes = {}): Promise<string> {
  return target(await decide(authorizeUrl(changes), { user })).searchParams.get('code') ?? '';
}

/** A POST of JSON to the token endpoint, with the first application's credentials; `undefined` leaves a field out. */
export function postToken(fields: Record<string, unknown>, more: RequestInit = {}): Promise<Response> {
  const { clientID, clientSecret } = service.options;
  const body = JSON.stringify({ client_id: clientID, client_secret: clientSecret, ...fields });
  return post('/oauth/token', body, 'application/json', more);
}

/** A POST of a text to any path of the service. */
export function post(path: string, body: string, type: string, more: RequestInit = {}): Promise<Response> {
  return fetch(service.authUrl + path, { method: 'POST', headers: { 'content-type': type }, body, ...more });
}

export function exchange(code: string, changes = {}, more: RequestInit = {}): Promise<Response> {
  return postToken({ grant_type: 'authorization_code', redirect_uri: callback, code, ...changes }, more);
}

export function refresh(refreshToken: string, changes = {}): Promise<Response> {
  return postToken({ grant_type: 'refresh_token', refresh_token: refreshToken, ...changes });
}

/** The tokens of a fresh login. */
export async function tokensFor(user = '1'): Promise<Tokens> {
  return body<Tokens>(await exchange(await codeFor(user)));
}

export function projects(accessToken: string, query = ''): Promise<Response> {
  return fetch(`${service.baseUrl}/api/v2/projects${query}`, { headers: { authorization: `Bearer ${accessToken}` } });
}

/** A GET request with headers that fetch does not allow, and further options of `http.request`. */
export function rawGet(path: string, headers: Record<string, string>, options: RawOptions = {}): Promise<RawAnswer> {
  return rawRequest(service.baseUrl, path, { headers, ...options });
}

/** A request of the API to a host of one's own. */
export function onHost(host: string, path: string, accessToken: string): Promise<RawAnswer> {
  const { port } = new URL(service.baseUrl);
  return rawGet(path, { host: `${host}:${port}`, authorization: `Bearer ${accessToken}` });
}

/** The claims of a JWT, without any check. */
export function claimsOf(accessToken: string): Record<string, unknown> {
  return JSON.parse(Buffer.from(accessToken.split('.')[1] ?? '', 'base64url').toString());
}

export async function body<T>(response: Response): Promise<T> {
  return response.json() as Promise<T>;
}

function attribute(tag: string, name: string): string {
  const [, value = ''] = new RegExp(` ${name}="([^"]*)"`).exec(tag) ?? [];
  return value
    .replace(/&lt;/g, '<')
    .replace(/&gt;/g, '>')
    .replace(/&quot;/g, '"')
    .replace(/&#39;/g, "'")
    .replace(/&amp;/g, '&');
}
