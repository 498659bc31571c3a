import type { IncomingMessage } from 'node:http';
import { ConfigurationError } from '../errors.js';

/** What strategies of one process may not share. */
export interface StrategyIdentity {
  readonly name: string;
  /** Differs for each `authUrl` and `clientID`. */
  readonly service: string;
  readonly authUrl: string;
  readonly callbackURL: string;
}

/** Most grants whose service is remembered while two strategies share a name. */
const MAX_GRANTS = 1_000;

/** How often each value stands under a key. */
class Tally {
  readonly #counts = new Map<string, Map<string, number>>();

  change(key: string, value: string, by: 1 | -1): void {
    const counts = this.#counts.get(key) ?? new Map<string, number>();
    const count = (counts.get(value) ?? 0) + by;
    if (count > 0) counts.set(value, count);
    else counts.delete(value);
    if (counts.size > 0) this.#counts.set(key, counts);
    else this.#counts.delete(key);
  }

  /** Returns true if other values than one stand under the key. */
  hasOthers(key: string): boolean {
    return (this.#counts.get(key)?.size ?? 0) > 1;
  }
}

/** The services of the open strategies of this process by name. */
const services = new Tally();

/** The open strategies of this process by callback URL. */
const strategiesAt = new Map<string, Set<OpenStrategy>>();

/** Which service issued a grant, by the strategies' name and the grant's id. In the order of the logins. */
const serviceOfGrant = new Map<string, string>();

/** A strategy among the open ones of this process: finds those that share a name or a callback URL and must not. */
export class OpenStrategy {
  readonly #identity: StrategyIdentity;
  /** As URLs compare; `undefined` for one that depends on the request. */
  readonly #callback: string | undefined;
  /** The application in which a login last began; `undefined` before the first one, and under Connect. */
  #application: WeakRef<object> | undefined;

  constructor(identity: StrategyIdentity) {
    this.#identity = identity;
    const { callbackURL } = identity;
    this.#callback = /^https?:/i.test(callbackURL) ? new URL(callbackURL).href : undefined;
    services.change(identity.name, identity.service, 1);
    if (this.#callback === undefined) return;
    strategiesAt.set(this.#callback, (strategiesAt.get(this.#callback) ?? new Set()).add(this));
  }

  /** Releases name and callback URL: the strategy is closed. */
  release(): void {
    const { name, service } = this.#identity;
    services.change(name, service, -1);
    if (this.#callback !== undefined) {
      const sharing = strategiesAt.get(this.#callback);
      sharing?.delete(this);
      if (sharing?.size === 0) strategiesAt.delete(this.#callback);
    }
    if (services.hasOthers(name)) return;
    for (const key of serviceOfGrant.keys()) if (key.startsWith(`${name} `)) serviceOfGrant.delete(key);
  }

  /**
   * Throws if another service sends its codes to this strategy's callback URL: the browser brings a code of the one to the
   * other, which redeems it at its own server (mix-up). A strategy that has only served another application is not meant,
   * such as one that an earlier test has left open.
   *
   * @throws ConfigurationError
   * @see RFC 9700, 4.4
   */
  refuseSharedCallback(req: IncomingMessage): void {
    const application = applicationOf(req);
    if (application && this.#application?.deref() !== application) this.#application = new WeakRef(application);
    const sharing = this.#callback === undefined ? undefined : strategiesAt.get(this.#callback);
    if (sharing === undefined || sharing.size === 1) return;
    const mayMixUp = (one: OpenStrategy) =>
      one.#identity.authUrl !== this.#identity.authUrl &&
      (!one.#application || !application || one.#application.deref() === application);
    if (![...sharing].some(mayMixUp)) return;
    throw new ConfigurationError(
      'callbackURL: another strategy of this process, for another service, has the same callback URL. A code of the one service could be sent to the other. Give each strategy its own callback URL and route.',
      { option: 'callbackURL', code: 'ERR_SHARED_CALLBACK' },
    );
  }

  /**
   * Returns true if a session's reference under this strategy's name is to a grant of another service. Each strategy finds its
   * own grants alone, but a login of one replaces the reference of the other.
   */
  sharesName(grantId: string | undefined): boolean {
    const { name, service } = this.#identity;
    if (grantId === undefined || !services.hasOthers(name)) return false;
    return (serviceOfGrant.get(`${name} ${grantId}`) ?? service) !== service;
  }

  /** Remembers a grant that a session refers to from now on, while the name is shared. */
  remember(grantId: string): void {
    const { name, service } = this.#identity;
    if (!services.hasOthers(name)) return;
    serviceOfGrant.set(`${name} ${grantId}`, service);
    for (const oldest of serviceOfGrant.keys()) {
      if (serviceOfGrant.size <= MAX_GRANTS) break;
      serviceOfGrant.delete(oldest);
    }
  }
}

/** Returns the Express application that a request came to, however deep its route is mounted; `undefined` under Connect. */
function applicationOf(req: IncomingMessage & { readonly app?: unknown }): object | undefined {
  let application: unknown = req.app;
  for (;;) {
    const parent: unknown = Object(application).parent;
    if (typeof parent !== 'function') return typeof application === 'function' ? application : undefined;
    application = parent;
  }
}
