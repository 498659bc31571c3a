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

/** Maximum number of grants whose service is remembered while two strategies share a name. */
const MAX_GRANTS = 1_000;

/** The open strategies of one name. */
class Namesakes {
  readonly strategies: Set<OpenStrategy> = new Set();
  /** Which of their services issued a grant, in the order of the logins. Known only while there are several. */
  readonly serviceOfGrant: Map<string, string> = new Map();
}

/** The open strategies of this process by name, and by callback URL. */
const strategiesNamed = new Map<string, Namesakes>();
const strategiesAt = new Map<string, Set<OpenStrategy>>();

/** A strategy among the open ones of this process: finds those that share a name or a callback URL and must not. */
export class OpenStrategy {
  readonly identity: StrategyIdentity;
  readonly namesakes: Namesakes;
  /** The callback URL, as URLs compare; `undefined` for one that depends on the request. */
  readonly #callback: string | undefined;
  /** The application in which a login last began; `undefined` before the first one, and under Connect. */
  #application: WeakRef<object> | undefined;

  constructor(identity: StrategyIdentity) {
    this.identity = identity;
    const { name, callbackURL } = identity;
    this.namesakes = strategiesNamed.get(name) ?? new Namesakes();
    strategiesNamed.set(name, this.namesakes);
    this.namesakes.strategies.add(this);
    this.#callback = /^https?:/i.test(callbackURL) ? new URL(callbackURL).href : undefined;
    if (this.#callback === undefined) return;
    strategiesAt.set(this.#callback, (strategiesAt.get(this.#callback) ?? new Set()).add(this));
  }

  /** Releases name and callback URL: the strategy is closed. */
  release(): void {
    const sharing = strategiesAt.get(this.#callback ?? '');
    sharing?.delete(this);
    if (sharing?.size === 0) strategiesAt.delete(this.#callback ?? '');
    const { strategies, serviceOfGrant } = this.namesakes;
    strategies.delete(this);
    if (strategies.size < 2) serviceOfGrant.clear();
    if (strategies.size === 0) strategiesNamed.delete(this.identity.name);
  }

  /**
   * Throws if another service sends its codes to this strategy's callback URL (mix-up).
   *
   * @throws ConfigurationError
   * @see RFC 9700, 4.4
   */
  refuseSharedCallback(req: IncomingMessage): void {
    const application = applicationOf(req);
    if (application && this.#application?.deref() !== application) this.#application = new WeakRef(application);
    for (const other of strategiesAt.get(this.#callback ?? '') ?? []) {
      if (other.identity.authUrl === this.identity.authUrl) continue;
      // It only served another application, such as one that an earlier test left open.
      if (other.#application && application && other.#application.deref() !== application) continue;
      throw new ConfigurationError(
        'callbackURL: another strategy of this process, for another service, has the same callback URL. A code of the one service could be sent to the other. Give each strategy its own callback URL and route.',
        { option: 'callbackURL', code: 'ERR_SHARED_CALLBACK' },
      );
    }
  }

  /** Returns true if another service is known to have issued a session's grant: a login would replace its reference. */
  isOfAnother(grantId: string): boolean {
    const { service } = this.identity;
    return (this.namesakes.serviceOfGrant.get(grantId) ?? service) !== service;
  }

  /** Remembers a grant of this service. */
  remember(grantId: string): void {
    const { serviceOfGrant } = this.namesakes;
    serviceOfGrant.set(grantId, this.identity.service);
    const [oldest] = serviceOfGrant.keys();
    if (serviceOfGrant.size > MAX_GRANTS && oldest !== undefined) serviceOfGrant.delete(oldest);
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
