import { LOOPBACK_HOST } from '../checks.js';
import type { Visit } from '../session/visit.js';

const OVER_HTTP =
  'This login was begun over http, as far as the application knows, and came back over https: browsers keep no cookie of a page over http for that. Open the application over https. Behind a proxy, have it set X-Forwarded-Proto.';

const CONTRADICTED =
  "callbackURL is relative, and X-Forwarded-Proto or X-Forwarded-Host of this login contradicts what was made of it: behind a proxy, set Express' trust proxy, or an absolute callbackURL.";

/** Most logins whose host names are remembered. */
const MAX_MISMATCHES = 1_000;

/**
 * Logins that were begun under another host name than that of their callback, such as 127.0.0.1 and localhost, or over http
 * where the callback has https: the browser does not send their cookie to the callback.
 */
export class HostMismatches {
  /** What to say of a login, by its state. In the order of their start. */
  readonly #messages = new Map<string, string>();
  readonly #warn: (message: string) => void;

  /** @param warn Warns once, however often it is called. */
  constructor(warn: (message: string) => void) {
    this.#warn = warn;
  }

  /** Remembers a login if its callback has another host name, and warns. */
  note(visit: Visit, redirectUri: string, state: string, isRelative: boolean): void {
    const { host: header, 'x-forwarded-host': forwardedHost, 'x-forwarded-proto': forwardedProto } = visit.headers;
    const isTls = () => visit.isSecure || /^\s*https\b/i.test(String(forwardedProto ?? ''));
    if (/^https:/i.test(redirectUri) && !isTls()) this.#remember(state, OVER_HTTP);
    // A relative callbackURL follows what Express trusts: without that, the proxy's word contradicts it.
    const proxied = isRelative && /^http:/i.test(redirectUri) && isTls();
    const isOtherHost =
      isRelative && forwardedHost !== undefined && String(forwardedHost).split(',', 1)[0]?.trim() !== visit.host;
    if (proxied || isOtherHost) this.#warn(`${CONTRADICTED} It became ${redirectUri}.`);
    // Nearly every login: no URL has to be parsed to see that its host is the same.
    const isSame = redirectUri.startsWith(`//${header}/`, redirectUri.indexOf(':') + 1);
    if (isSame && forwardedHost === undefined) return;
    const { host: here } = visit;
    if (here === undefined) return;
    const { host, hostname } = new URL(redirectUri);
    // Cookies do not distinguish ports.
    const { hostname: hereName } = new URL(`http://${here}`);
    if (hereName === hostname) return;
    const message = `This login was begun at ${here} and came back to ${host}, where the browser does not send its cookie. Open the application at ${host}.`;
    this.#remember(state, message);
    // Tests reach an application by an address of loopback, whatever its callbackURL is. Their logins are not lost.
    const isTest =
      process.env.NODE_ENV !== 'production' && LOOPBACK_HOST.test(hostname) && LOOPBACK_HOST.test(hereName);
    if (isTest) return;
    this.#warn(
      `A login was begun at ${here}, but callbackURL leads to ${host}: the browser does not send the cookie of the login there. Open the application at ${host}. If a proxy has changed the Host header, set Express' trust proxy.`,
    );
  }

  /**
   * Returns why a login was lost that began under another host name, or without TLS. Also warns about the first one under
   * another host name.
   */
  explain(state: string | undefined): string | undefined {
    const message = state === undefined ? undefined : this.#messages.get(state);
    if (message !== undefined && message !== OVER_HTTP) this.#warn(message);
    return message;
  }

  /** Forgets a login that is not lost. */
  forget(state: string): void {
    this.#messages.delete(state);
  }

  #remember(state: string, message: string): void {
    this.#messages.set(state, message);
    for (const oldest of this.#messages.keys()) {
      if (this.#messages.size <= MAX_MISMATCHES) break;
      this.#messages.delete(oldest);
    }
  }
}
