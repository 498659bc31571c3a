import type { IncomingMessage } from 'node:http';
import { ConfigurationError } from '../errors.js';
import { sessionOf } from './session.js';

/** Most sessions and references that are remembered while two strategies share a name. */
const MAX_ENTRIES = 1_000;

/** Services of the living strategies of this process, by the strategies' name. */
const servicesByName = new Map<string, readonly string[]>();

/** The service that a session was first used for, or that a reference belongs to. In the order of use. */
const owners = new Map<string, string>();

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

  /** Returns an error if the request's session refers to the grant of another strategy. Warns once if they share a session. */
  conflictIn(req: IncomingMessage): ConfigurationError | undefined {
    if (!this.#isShared) return undefined;
    const session = sessionOf(req);
    const reference = session?.[this.#name];
    const sessionID: unknown = session && 'sessionID' in req ? req.sessionID : undefined;
    const sessionOwner = this.#ownerOf('session', sessionID);
    if (sessionOwner === undefined) this.#own('session', sessionID);
    const isForeign = typeof reference === 'string' && this.#isOther(this.#ownerOf('grant', reference));
    if (!isForeign && !this.#isOther(sessionOwner)) return undefined;
    const error = new ConfigurationError(
      `name: two strategies for different services have the name '${this.#name}' and use one session. Set the option name of one of them to another name: the name given to passport.use does not set it.`,
      { option: 'name', code: 'ERR_STRATEGY_NAME' },
    );
    if (!this.#hasWarned) process.emitWarning(error.message, { code: error.code });
    this.#hasWarned = true;
    return isForeign ? error : undefined;
  }

  /** Remembers that a reference is this strategy's. */
  ownReference(reference: string): void {
    if (this.#isShared) this.#own('grant', reference);
  }

  /** Releases the name: the strategy is closed. */
  release(): void {
    const services = [...(servicesByName.get(this.#name) ?? [])];
    const index = services.indexOf(this.#service);
    if (index >= 0) services.splice(index, 1);
    if (services.length > 0) servicesByName.set(this.#name, services);
    else servicesByName.delete(this.#name);
  }

  get #isShared(): boolean {
    return (servicesByName.get(this.#name) ?? []).some((service) => service !== this.#service);
  }

  /** Returns true for the service of another strategy that still lives. */
  #isOther(service: string | undefined): boolean {
    return (
      service !== undefined && service !== this.#service && Boolean(servicesByName.get(this.#name)?.includes(service))
    );
  }

  #ownerOf(kind: string, id: unknown): string | undefined {
    return owners.get(JSON.stringify([this.#name, kind, id]));
  }

  #own(kind: string, id: unknown): void {
    if (typeof id !== 'string') return;
    owners.set(JSON.stringify([this.#name, kind, id]), this.#service);
    for (const oldest of owners.keys()) {
      if (owners.size <= MAX_ENTRIES) break;
      owners.delete(oldest);
    }
  }
}
