import type { IncomingMessage } from 'node:http';
import { hostOf } from '../request/incoming-request.js';

/** Most logins whose host names are remembered. */
const MAX_LOGINS = 1_000;

/**
 * Logins that were begun under another host name than that of their callback, such as 127.0.0.1 and localhost: the
 * browser does not send their cookie to the callback.
 */
export class HostMismatches {
  /** What to say of a login, by its state. In the order of their start. */
  readonly #messages = new Map<string, string>();
  #hasWarned = false;

  /** Remembers a login if its callback has another host name, and warns once. */
  note(req: IncomingMessage, redirectUri: string, state: string): void {
    const here = hostOf(req);
    const { host, hostname } = new URL(redirectUri);
    // Cookies do not tell ports apart.
    if (here === undefined || new URL(`http://${here}`).hostname === hostname) return;
    const message = `This login was begun at ${here} and came back to ${host}, where the browser does not send its cookie. Open the application at ${host}.`;
    this.#messages.set(state, message);
    for (const oldest of this.#messages.keys()) {
      if (this.#messages.size <= MAX_LOGINS) break;
      this.#messages.delete(oldest);
    }
    if (this.#hasWarned) return;
    this.#hasWarned = true;
    process.emitWarning(
      `A login was begun at ${here}, but callbackURL leads to ${host}: the browser does not send the cookie of the login there. Open the application at ${host}. If a proxy has changed the Host header, set Express' trust proxy.`,
      { code: 'ERR_LOGIN_HOST' },
    );
  }

  /** Returns what to tell of a login that was begun under another host name. */
  messageOf(state: string | undefined): string | undefined {
    return state === undefined ? undefined : this.#messages.get(state);
  }
}
