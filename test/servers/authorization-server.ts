import type { StrategyOptions } from 'passport-oauth-app';
import type { Browser } from '../support/browser.js';
import { type Visitor, walk } from './forms.js';

/** An authorization server of others, as it is installed here. */
export interface AuthorizationServer {
  readonly name: string;
  /** What to install: a package of npm, or packages of Debian. */
  readonly packages: readonly string[];
  /** The version that is installed; `undefined` if it is not. */
  readonly version: string | undefined;
  /** The options that the package needs for it, beside addresses and credentials. docs/figures/servers.md shows them. */
  readonly options: Partial<StrategyOptions> & Pick<StrategyOptions, 'tokenPath'>;
  /** Where the server tells whose an access token is. */
  readonly identity: {
    readonly path: string;
    /** Reads the user from the answer's JSON. */
    readonly user: (answer: Readonly<Record<string, unknown>>) => unknown;
  };
  /** What a refresh whose answer is lost does to the login: it is lost where the server accepts no refresh token twice. */
  readonly lostAnswer: 'kept' | 'lost';
  /** Starts it with one client and its users, as its manual says. It is ready then. */
  start(place: Place): Promise<RunningServer>;
}

/** Where a server runs, and whom it knows. */
export interface Place {
  /** The port that it listens on, at 127.0.0.1. */
  readonly port: number;
  /** The address under which browsers and the application reach it. */
  readonly origin: string;
  /** A folder of its own for its data. */
  readonly folder: string;
  readonly client: { readonly id: string; readonly secret: string; readonly redirectUri: string };
  readonly users: readonly { readonly name: string; readonly password: string }[];
}

/** The tokens that a server has issued last. */
export interface Tokens {
  readonly accessToken: string;
  readonly refreshToken: string;
}

/** A server that runs. */
export interface RunningServer {
  /** Takes a browser from the authorization request to the redirect back; returns its address. */
  authorize(browser: Browser, url: string, visitor: Visitor): Promise<string>;
  /** Ends the authorization at the server, as its user or its administrator does. */
  revoke(tokens: Tokens, user: string): Promise<void>;
  /** Stops the server: connections to it are refused. */
  stop(): Promise<void>;
  /** Starts it again where it was, with what it knew. */
  restart(): Promise<void>;
  /** Ends it for good. May be called after {@link stop}. */
  close(): Promise<void>;
}

/** Logs in and consents on pages of HTML. @param labels Of the buttons or links of the consent page. */
export function authorizeByForms(
  { client }: Place,
  labels: { readonly approve: RegExp; readonly decline: RegExp },
): RunningServer['authorize'] {
  return async (browser, url, visitor) => {
    const press = visitor.declines ? labels.decline : labels.approve;
    return walk(browser, await browser.visit(url), { visitor, press, until: client.redirectUri });
  };
}

/** A request to the token endpoint or the revocation endpoint, with the client's credentials where the options say. */
export function asClient(
  path: string,
  { origin, client }: Place,
  { clientAuthentication = 'body' }: Pick<StrategyOptions, 'clientAuthentication'>,
  parameters: Readonly<Record<string, string>>,
): Promise<Response> {
  const { id, secret } = client;
  const body = new URLSearchParams(parameters);
  const headers = new Headers();
  if (clientAuthentication === 'body') {
    body.set('client_id', id);
    body.set('client_secret', secret);
  } else {
    const encode = clientAuthentication === 'basic' ? encodeURIComponent : String;
    headers.set('authorization', `Basic ${btoa(`${encode(id)}:${encode(secret)}`)}`);
  }
  return fetch(`${origin}${path}`, { method: 'POST', headers, body });
}

/** Returns a {@link RunningServer.revoke} that revokes both tokens at the server's revocation endpoint (RFC 7009). */
export function revokeAt(path: string, place: Place, options: AuthorizationServer['options']): RunningServer['revoke'] {
  return async ({ accessToken, refreshToken }) => {
    for (const [hint, token] of [
      ['refresh_token', refreshToken],
      ['access_token', accessToken],
    ] as const) {
      const { status } = await asClient(path, place, options, { token, token_type_hint: hint });
      // Some servers no longer know the access token then.
      if (status !== 200 && hint === 'refresh_token')
        throw new Error(`The revocation of the ${hint} answered ${status}`);
    }
  };
}
