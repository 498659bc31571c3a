import type { IncomingMessage } from 'node:http';
import { sessionOf } from './session.js';

/** Most sessions that are remembered while two strategies share a name. */
const MAX_SESSIONS = 1_000;

/** Services of the living strategies of this process, by the strategies' name. */
const servicesByName = new Map<string, string[]>();

/** Which service last used a session, by the strategies' name and the session's id. In the order of use. */
const serviceOfSession = new Map<string, string>();

/**
 * A strategy's name, as the key of its reference under the session.
 *
 * Two strategies of one name for two services would overwrite each other's reference. Nothing is done, and nothing is
 * remembered, while the names of this process differ.
 */
export class StrategyName {
  readonly #name: string;
  readonly #service: string;
  #hasWarned = false;

  /** @param service Differs for each `authUrl` and `clientID`. */
  constructor(name: string, service: string) {
    this.#name = name;
    this.#service = service;
    servicesByName.set(name, [...(servicesByName.get(name) ?? []), service]);
  }

  /**
   * Warns once if another strategy of this name, for another service, uses the request's session too. Each finds its own
   * grants alone, but a login of one replaces the reference of the other.
   */
  warnIfShared(req: IncomingMessage): void {
    const services = servicesByName.get(this.#name) ?? [];
    if (this.#hasWarned || services.every((service) => service === this.#service)) return;
    const sessionID: unknown = sessionOf(req) && 'sessionID' in req ? req.sessionID : undefined;
    if (typeof sessionID !== 'string') return;
    const key = JSON.stringify([this.#name, sessionID]);
    const owner = serviceOfSession.get(key);
    if (owner !== undefined && owner !== this.#service && services.includes(owner)) {
      this.#hasWarned = true;
      process.emitWarning(
        `Two strategies for different services have the name '${this.#name}' and use one session. Set the option name of one of them to another name: the name given to passport.use does not set it.`,
        { code: 'ERR_STRATEGY_NAME' },
      );
      return;
    }
    serviceOfSession.set(key, this.#service);
    for (const oldest of serviceOfSession.keys()) {
      if (serviceOfSession.size <= MAX_SESSIONS) break;
      serviceOfSession.delete(oldest);
    }
  }

  /** Releases the name: the strategy is closed. */
  release(): void {
    const services = [...(servicesByName.get(this.#name) ?? [])];
    const index = services.indexOf(this.#service);
    if (index >= 0) services.splice(index, 1);
    if (services.length > 0) servicesByName.set(this.#name, services);
    else servicesByName.delete(this.#name);
  }
}
