import { isSecureUrl } from '../checks.js';
import { HttpClient } from '../http/http-client.js';
import { type HttpRequest, type HttpResponse, headerValue } from '../http/message.js';
import { endpointUrl } from '../oauth/addresses.js';
import { ClientRequest, type ClientRequestOptions } from '../oauth/client-request.js';
import { DEFAULTS } from '../options.js';
import type { Secret } from '../redaction.js';

/** What one check found. `fail`: no login can succeed. `warn`: it may fail later, or could not be checked. */
export interface Finding {
  readonly check: string;
  readonly result: 'ok' | 'warn' | 'fail';
  readonly text: string;
}

/** Settings of a service, checked. */
export interface ServiceSettings {
  readonly authUrl: string;
  readonly baseUrl: string;
  readonly clientID: string;
  readonly clientSecret: Secret;
  readonly callbackURL: URL;
  /** Given on the command line: they take precedence over metadata. */
  readonly authorizationPath: string | undefined;
  readonly tokenPath: string | undefined;
}

/** Options that a service needs, of which those that differ from the defaults are printed. */
export type ServiceOptions = Readonly<Record<string, string | boolean | undefined>>;

/** How token requests may look, the most likely first. */
const FORMATS: readonly Pick<ClientRequestOptions, 'tokenRequest' | 'clientAuthentication'>[] = [
  { tokenRequest: 'json', clientAuthentication: 'body' },
  { tokenRequest: 'form', clientAuthentication: 'body' },
  { tokenRequest: 'form', clientAuthentication: 'basic' },
  { tokenRequest: 'form', clientAuthentication: 'basic-raw' },
  { tokenRequest: 'json', clientAuthentication: 'basic' },
];

const TIMEOUT_MS = 10_000;
const MAX_BYTES = 1024 * 1024;

/** A clock that is off by more loses logins that begin and end on different hosts. */
const MAX_SKEW_MS = 60_000;

/** What an authorization server says of a refresh token that it never issued, after it has accepted the client. */
const UNKNOWN_TOKEN =
  /invalid[_ -]?grant|bad[_ -]?refresh|(?:invalid|unknown|expired)[\w -]*(?:refresh|token)|(?:refresh|token)[\w -]*(?:invalid|not found|expired)/i;

const UNKNOWN_CLIENT =
  /(?:invalid|unauthorized|unknown|incorrect)[_ -]?client|client[\w -]*(?:not found|credentials|secret)/i;

/** What came of a request: a response, or why there was none. */
type Answer = HttpResponse | { readonly failure: string };

/** Asks a service what can be asked without a login. */
export class ServiceProbe {
  readonly #settings: ServiceSettings;
  readonly #report: (finding: Finding) => void;
  readonly #http = new HttpClient();

  constructor(settings: ServiceSettings, report: (finding: Finding) => void) {
    this.#settings = settings;
    this.#report = report;
  }

  /** Runs all checks. Returns the options that the service needs. */
  async run(): Promise<ServiceOptions> {
    const { authorizationPath, tokenPath } = this.#settings;
    const published = await this.#readMetadata();
    const options = {
      ...published,
      authorizationPath: authorizationPath ?? published.authorizationPath ?? DEFAULTS.authorizationPath,
      tokenPath: tokenPath ?? published.tokenPath ?? DEFAULTS.tokenPath,
    };
    await this.#checkApi();
    await this.#checkAuthorization(String(options.authorizationPath));
    const format = await this.#checkClient(String(options.tokenPath));
    this.#checkCallback();
    return { ...options, ...format };
  }

  async close(): Promise<void> {
    await this.#http.close();
  }

  /**
   * Reads the metadata of the authorization server, if it publishes any. Sends no secret.
   *
   * @see RFC 8414, section 3; OpenID Connect Discovery 1.0, section 4
   */
  async #readMetadata(): Promise<ServiceOptions> {
    const { authUrl, tokenPath } = this.#settings;
    const { origin, pathname } = new URL(authUrl);
    const path = pathname === '/' ? '' : pathname;
    const wellKnown = `${origin}/.well-known`;
    const addresses = [`${wellKnown}/oauth-authorization-server${path}`, `${authUrl}/.well-known/openid-configuration`];
    for (const address of addresses) {
      const document = metadataIn(await this.#send(new URL(address)));
      if (document === undefined) continue;
      this.#report({ check: 'metadata', result: 'ok', text: `found at ${address}` });
      const options = optionsOf(document, authUrl);
      const { tokenPath: named } = options;
      const isElsewhere = typeof named === 'string' && !named.startsWith('/') && new URL(named).origin !== origin;
      if (!isElsewhere || tokenPath !== undefined) return options;
      const text = `names a token endpoint on another origin. The secret is not sent there. If the address is right, run again with --token-path ${named}`;
      this.#report({ check: 'metadata', result: 'warn', text });
      return { ...options, tokenPath: undefined };
    }
    this.#report({ check: 'metadata', result: 'ok', text: 'none published' });
    return {};
  }

  async #checkApi(): Promise<void> {
    const { baseUrl } = this.#settings;
    const answer = await this.#send(new URL(baseUrl));
    if ('failure' in answer) this.#report({ check: 'baseUrl', result: 'fail', text: `${baseUrl}: ${answer.failure}` });
    else this.#report({ check: 'baseUrl', result: 'ok', text: `${baseUrl} answers` });
  }

  async #checkAuthorization(path: string): Promise<void> {
    const { authUrl, clientID, callbackURL } = this.#settings;
    const url = endpointUrl(authUrl, path);
    const parameters = {
      client_id: clientID,
      redirect_uri: callbackURL.href,
      response_type: 'code',
      scope: '',
      state: 'doctor',
    };
    for (const [name, value] of Object.entries(parameters)) if (value !== '') url.searchParams.append(name, value);
    const answer = await this.#send(url, { accept: 'text/html' });
    this.#report({ check: 'authorization endpoint', ...judgedAuthorization(`${url.origin}${url.pathname}`, answer) });
    this.#checkClock(answer);
  }

  #checkClock(answer: Answer): void {
    const date = 'headers' in answer ? Date.parse(headerValue(answer.headers, 'date') ?? '') : Number.NaN;
    if (Number.isNaN(date)) return;
    const skewMs = Date.now() - date;
    const seconds = Math.round(Math.abs(skewMs) / 1000);
    if (Math.abs(skewMs) <= MAX_SKEW_MS)
      this.#report({ check: 'clock', result: 'ok', text: 'agrees with the service' });
    else {
      const text = `${seconds} s ${skewMs > 0 ? 'ahead of' : 'behind'} the service. Synchronize it (NTP)`;
      this.#report({ check: 'clock', result: 'warn', text });
    }
  }

  /** Finds the format of token requests, and whether the secret is right, with a refresh token that no service ever issued. */
  async #checkClient(tokenPath: string): Promise<ServiceOptions> {
    const { authUrl, clientID, clientSecret } = this.#settings;
    const { origin, pathname } = endpointUrl(authUrl, tokenPath);
    const address = `${origin}${pathname}`;
    const check = 'token endpoint';
    let refused: string | undefined;
    let last = '';
    for (const format of FORMATS) {
      if (format.clientAuthentication === 'basic-raw' && clientID.includes(':')) continue;
      const request = new ClientRequest(
        { authUrl, clientID, clientSecret, timeoutMs: TIMEOUT_MS, ...format },
        tokenPath,
      );
      const answer = await this.#answer(
        request.with({ grant_type: 'refresh_token', refresh_token: 'made-up-by-doctor' }),
      );
      const words = `${format.tokenRequest}, credentials in the ${format.clientAuthentication === 'body' ? 'body' : 'Authorization header'}`;
      if ('failure' in answer) {
        this.#report({ check, result: 'fail', text: `${address}: ${answer.failure}` });
        return {};
      }
      const text = answer.body.toString('utf8');
      if (UNKNOWN_TOKEN.test(text) && !UNKNOWN_CLIENT.test(text)) {
        this.#report({ check, result: 'ok', text: `${address} accepts client ID and secret (${words})` });
        return format;
      }
      if (UNKNOWN_CLIENT.test(text) || answer.status === 401) refused = words;
      last = `status ${answer.status}`;
    }
    const text =
      refused === undefined
        ? `${address} did not answer as a token endpoint (${last}). Set tokenPath`
        : `${address} refuses the client (${refused}). Check CLIENT_ID and CLIENT_SECRET`;
    this.#report({ check, result: 'fail', text });
    return {};
  }

  #checkCallback(): void {
    const { callbackURL } = this.#settings;
    const [result, text] =
      callbackURL.protocol === 'https:'
        ? ([
            'ok',
            `${callbackURL}: behind a proxy, set Express' trust proxy, and cookie.secure of the session to true`,
          ] as const)
        : isSecureUrl(callbackURL)
          ? (['ok', `${callbackURL}: for development. Leave cookie.secure of the session unset`] as const)
          : (['fail', `${callbackURL}: expected https. Cookies and codes would be sent unencrypted`] as const);
    this.#report({ check: 'callbackURL', result, text });
  }

  #send(url: URL, headers: Readonly<Record<string, string>> = { accept: 'application/json' }): Promise<Answer> {
    const { origin, pathname, search } = url;
    const list = Object.entries(headers).flat();
    return this.#answer({
      origin,
      path: `${pathname}${search}`,
      method: 'GET',
      headers: list,
      timeoutMs: TIMEOUT_MS,
      maxBytes: MAX_BYTES,
    });
  }

  async #answer(request: HttpRequest): Promise<Answer> {
    const headers = [...request.headers, 'user-agent', 'passport-oauth-app doctor'];
    try {
      return await this.#http.send({ ...request, headers });
    } catch (error) {
      return { failure: error instanceof Error ? error.message : String(error) };
    }
  }
}

/** Returns what an answer to an authorization request without a user means. */
function judgedAuthorization(address: string, answer: Answer): Pick<Finding, 'result' | 'text'> {
  if ('failure' in answer) return { result: 'fail', text: `${address}: ${answer.failure}` };
  const { status } = answer;
  if (status === 404 || status === 405)
    return { result: 'fail', text: `${address} is not there (${status}). Set authorizationPath` };
  if (status === 400 || status === 422)
    return {
      result: 'fail',
      text: `${address} refuses the request (${status}). Register CALLBACK_URL with the application, and check CLIENT_ID`,
    };
  if (status >= 500) return { result: 'warn', text: `${address} failed (${status}). Try again later` };
  return { result: 'ok', text: `${address} answers` };
}

function metadataIn(answer: Answer): Readonly<Record<string, unknown>> | undefined {
  if ('failure' in answer || answer.status !== 200) return undefined;
  try {
    const document: unknown = JSON.parse(answer.body.toString('utf8'));
    if (typeof Object(document).authorization_endpoint !== 'string') return undefined;
    return Object.fromEntries(Object.entries(Object(document)));
  } catch {
    return undefined;
  }
}

/** Returns the options that metadata names. Endpoints below `authUrl` become paths. */
function optionsOf(document: Readonly<Record<string, unknown>>, authUrl: string): ServiceOptions {
  const endpoint = (name: string): string | undefined => {
    const value = document[name];
    if (typeof value !== 'string' || !URL.canParse(value) || !/^https?:/.test(value)) return undefined;
    return value.startsWith(`${authUrl}/`) ? value.slice(authUrl.length) : value;
  };
  const methods = document.code_challenge_methods_supported;
  const sendsIssuer = document.authorization_response_iss_parameter_supported === true;
  return {
    authorizationPath: endpoint('authorization_endpoint'),
    tokenPath: endpoint('token_endpoint'),
    revocationPath: endpoint('revocation_endpoint'),
    issuer: sendsIssuer && typeof document.issuer === 'string' ? document.issuer : undefined,
    pkce: Array.isArray(methods) && methods.includes('S256'),
  };
}
