import { isSecureUrl } from '../checks.js';
import { HttpClient } from '../http/http-client.js';
import { type HttpRequest, type HttpResponse, headerValue } from '../http/message.js';
import { endpointUrl } from '../oauth/addresses.js';
import { ClientRequest, type ClientRequestOptions } from '../oauth/client-request.js';
import { DEFAULTS } from '../options.js';
import { Secret } from '../redaction.js';

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

/** How token requests may look, that of RFC 6749 first: servers that also take JSON rarely document it. */
const FORMATS: readonly Pick<ClientRequestOptions, 'tokenRequest' | 'clientAuthentication'>[] = [
  { tokenRequest: 'form', clientAuthentication: 'body' },
  { tokenRequest: 'json', clientAuthentication: 'body' },
  { tokenRequest: 'form', clientAuthentication: 'basic' },
  { tokenRequest: 'form', clientAuthentication: 'basic-raw' },
  { tokenRequest: 'json', clientAuthentication: 'basic' },
];

const TIMEOUT_MS = 10_000;
const MAX_BYTES = 1024 * 1024;

/** A clock that is off by more loses logins that begin and end on different hosts. */
const MAX_SKEW_MS = 60_000;

const UNKNOWN_CLIENT =
  /(?:invalid|unauthorized|unknown|incorrect)[_ -]?client|client[\w -]*(?:not found|credentials|secret)/i;

const MADE_UP = 'made-up-by-doctor';

/** The second one is for servers that look at the code before the client. Its scope is made up so that no token is issued. */
const GRANTS: readonly Readonly<Record<string, string>>[] = [
  { grant_type: 'authorization_code', code: MADE_UP },
  { grant_type: 'client_credentials', scope: MADE_UP },
];

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
    const requiresPkce = await this.#checkAuthorization(String(options.authorizationPath));
    const format = await this.#checkClient(String(options.tokenPath));
    this.#checkCallback();
    return { ...options, pkce: requiresPkce || published.pkce, ...format };
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
    const target = locationOf(answer).split('?')[0];
    const text = `${baseUrl} ${target ? `redirects to ${target}` : 'answers'}`;
    if ('failure' in answer) this.#report({ check: 'baseUrl', result: 'fail', text: `${baseUrl}: ${answer.failure}` });
    else this.#report({ check: 'baseUrl', result: 'ok', text });
  }

  /** Checks the authorization endpoint and the clock. Returns true if the service requires PKCE. */
  async #checkAuthorization(path: string): Promise<boolean> {
    const { authUrl, clientID, callbackURL } = this.#settings;
    const url = endpointUrl(authUrl, path);
    const request = { client_id: clientID, redirect_uri: callbackURL.href, response_type: 'code', state: 'doctor' };
    for (const [name, value] of Object.entries(request)) url.searchParams.append(name, value);
    const answer = await this.#send(url, 'text/html');
    this.#report({ check: 'authorization endpoint', ...judgedAuthorization(`${url.origin}${url.pathname}`, answer) });
    this.#checkClock(answer);
    return /[?&]error=invalid_request&.*(?:pkce|code_challenge)/i.test(locationOf(answer));
  }

  #checkClock(answer: Answer): void {
    const date = 'headers' in answer ? Date.parse(headerValue(answer.headers, 'date') ?? '') : Number.NaN;
    if (Number.isNaN(date)) return;
    const skewMs = Date.now() - date;
    const agrees = Math.abs(skewMs) <= MAX_SKEW_MS;
    const difference = `${Math.round(Math.abs(skewMs) / 1000)} s ${skewMs > 0 ? 'ahead of' : 'behind'} the service`;
    const text = agrees ? 'agrees with the service' : `${difference}. Synchronize it (NTP)`;
    this.#report({ check: 'clock', result: agrees ? 'ok' : 'warn', text });
  }

  /** Finds the format of token requests, and whether the secret is right: a made-up one gets another answer then. */
  async #checkClient(tokenPath: string): Promise<ServiceOptions> {
    const { authUrl, clientID, clientSecret, callbackURL } = this.#settings;
    const { origin, pathname } = endpointUrl(authUrl, tokenPath);
    const report = (result: Finding['result'], text: string, options: ServiceOptions = {}): ServiceOptions => {
      this.#report({ check: 'token endpoint', result, text: `${origin}${pathname} ${text}` });
      return options;
    };
    let [refused, unchecked, none]: (string | undefined)[] = [];
    for (const grant of GRANTS) {
      for (const format of FORMATS) {
        if (format.clientAuthentication === 'basic-raw' && clientID.includes(':')) continue;
        const ask = (secret: Secret): Promise<Answer> => {
          const options = { authUrl, clientID, clientSecret: secret, timeoutMs: TIMEOUT_MS, ...format };
          return this.#answer(new ClientRequest(options, tokenPath).with(grant, { redirect_uri: callbackURL.href }));
        };
        const [answer, other] = [await ask(clientSecret), await ask(new Secret(MADE_UP))];
        if ('failure' in answer) return report('fail', `does not answer: ${answer.failure}`);
        const words = `${format.tokenRequest}, credentials in the ${format.clientAuthentication === 'body' ? 'body' : 'Authorization header'}`;
        const refusal = refusalOf(other);
        if (refusal !== undefined && refusal !== refusalOf(answer) && answer.status < 429)
          return report('ok', `accepts client ID and secret (${words})`, format);
        if (refusal !== undefined) refused = `refuses the client (${words}). Check CLIENT_ID and CLIENT_SECRET`;
        else if (answer.body.includes('invalid_grant'))
          unchecked = 'answers a made-up secret as it answers yours. Log in to see whether CLIENT_SECRET is right';
        const status = `status ${answer.status} ${locationOf(answer).split('?')[0]}`.trimEnd();
        none = `did not answer as a token endpoint (${status}). Set tokenPath`;
      }
      if (unchecked === undefined) break;
    }
    return report('fail', `${refused ?? unchecked ?? none}`);
  }

  #checkCallback(): void {
    const { callbackURL } = this.#settings;
    const [result, advice] =
      callbackURL.protocol === 'https:'
        ? (['ok', "behind a proxy, set Express' trust proxy, and cookie.secure of the session to true"] as const)
        : isSecureUrl(callbackURL)
          ? (['ok', 'for development. Leave cookie.secure of the session unset'] as const)
          : (['fail', 'expected https. Cookies and codes would be sent unencrypted'] as const);
    this.#report({ check: 'callbackURL', result, text: `${callbackURL}: ${advice}` });
  }

  #send({ origin, pathname, search }: URL, accept = 'application/json'): Promise<Answer> {
    const limits = { timeoutMs: TIMEOUT_MS, maxBytes: MAX_BYTES };
    return this.#answer({
      origin,
      path: `${pathname}${search}`,
      method: 'GET',
      headers: ['accept', accept],
      ...limits,
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
  // Some servers fail, or redirect to an error page, for a client or a callback URL that they do not know.
  const isRefused = status >= 400 || /[?&]error=(?:invalid|unauthorized)_(?:client|redirect)/.test(locationOf(answer));
  if (!isRefused) return { result: 'ok', text: `${address} answers` };
  const advice = 'Register CALLBACK_URL with the application, and check CLIENT_ID';
  return { result: 'fail', text: `${address} refuses the request (${status}). ${advice}` };
}

/** Returns where an answer redirects to; `''` if it does not. */
function locationOf(answer: Answer): string {
  return 'headers' in answer ? (headerValue(answer.headers, 'location') ?? '') : '';
}

/** Returns how an answer refuses the client, if it does. */
function refusalOf(answer: Answer): string | undefined {
  if ('failure' in answer) return undefined;
  return UNKNOWN_CLIENT.exec(answer.body.toString('utf8'))?.[0] ?? (answer.status === 401 ? 'status 401' : undefined);
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
