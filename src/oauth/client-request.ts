import { optionError } from '../checks.js';
import { type HttpRequest, USER_AGENT } from '../http/message.js';
import type { Secret } from '../redaction.js';
import { endpointUrl } from './addresses.js';

/** Options that decide how requests of this client to the authorization server look. */
export interface ClientRequestOptions {
  /** Base address of the authorization server, without a trailing slash. */
  readonly authUrl: string;
  readonly tokenRequest: 'json' | 'form';
  readonly clientAuthentication: 'body' | 'basic' | 'basic-raw';
  readonly clientID: string;
  readonly clientSecret: Secret;
  /** Default: the package's. */
  readonly userAgent?: string | undefined;
  /** Milliseconds for one HTTP request, connect to last byte. */
  readonly timeoutMs: number;
}

/** Maximum size of a response body, after decoding. Some ID tokens take hundreds of kilobytes. */
export const MAX_RESPONSE_BYTES: number = 1024 * 1024;

const CONTENT_TYPES = { json: 'application/json', form: 'application/x-www-form-urlencoded' } as const;

/** Creates the requests to one endpoint of the authorization server, with the client's credentials. */
export class ClientRequest {
  /** True if servers read the Basic credentials in two ways: form-encoded (RFC 6749, 2.3.1) or raw (RFC 7617). */
  readonly isAmbiguous: boolean;
  /** The secret in the forms that are sent. No message repeats it. */
  readonly secrets: readonly string[];
  readonly #request: HttpRequest;
  readonly #credentials: Readonly<Record<string, string>>;
  readonly #isJson: boolean;

  /** @param path A path below `authUrl`, or a whole URL. @throws ConfigurationError for a client ID that Basic cannot carry */
  constructor(options: ClientRequestOptions, path: string) {
    const { authUrl, tokenRequest, clientAuthentication, clientID, userAgent = USER_AGENT, timeoutMs } = options;
    if (clientAuthentication === 'basic-raw' && clientID.includes(':')) {
      const expected = "expected no colon with clientAuthentication 'basic-raw' (RFC 7617, 2)";
      throw optionError('clientID', expected);
    }
    const secret = options.clientSecret.reveal();
    const raw = `${clientID}:${secret}`;
    // Each part form-encoded (RFC 6749, 2.3.1). Servers that do not decode them get them raw (RFC 7617).
    const encoded = [clientID, secret].map((part) => `${new URLSearchParams([['', part]])}`.slice(1)).join(':');
    const basic = Buffer.from(clientAuthentication === 'basic' ? encoded : raw).toString('base64');
    const isBasic = clientAuthentication !== 'body';
    this.secrets = isBasic ? [secret, basic] : [secret];
    this.isAmbiguous = isBasic && encoded !== raw;
    this.#credentials = isBasic ? {} : { client_id: clientID, client_secret: secret };
    this.#isJson = tokenRequest === 'json';
    const { origin, pathname, search } = endpointUrl(authUrl, path);
    const headers = [
      ...['content-type', CONTENT_TYPES[tokenRequest], 'accept', 'application/json', 'user-agent', userAgent],
      ...(isBasic ? ['authorization', `Basic ${basic}`] : []),
    ];
    const target = { origin, path: `${pathname}${search}`, method: 'POST', headers };
    this.#request = { ...target, timeoutMs, maxBytes: MAX_RESPONSE_BYTES };
  }

  /** Returns the request with parameters before and after the credentials. */
  with(before: Readonly<Record<string, string>>, after: Readonly<Record<string, string | number>> = {}): HttpRequest {
    const parameters = { ...before, ...this.#credentials, ...after };
    const texts = () => Object.entries(parameters).map(([name, value]): [string, string] => [name, `${value}`]);
    const body = this.#isJson ? JSON.stringify(parameters) : new URLSearchParams(texts()).toString();
    return { ...this.#request, body };
  }
}
