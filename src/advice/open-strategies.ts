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

/** The open strategies of this process by name, and by callback URL. */
const strategiesNamed = new Map<string, Set<OpenStrategy>>();
const strategiesAt = new Map<string, Set<OpenStrategy>>();

/** Which service issued a grant, by the strategies' name and the grant's id. In the order of the logins. */
const serviceOfGrant = new Map<string, string>();

/** A strategy among the open ones of this process: finds those that share a name or a callback URL and must not. */
export class OpenStrategy {
  /** The open strategies of this name, this one included. */
  readonly namesakes: Set<OpenStrategy>;
  readonly identity: StrategyIdentity;
  /** The callback URL, as URLs compare; `undefined` for one that depends on the request. */
  readonly #callback: string | undefined;
  /** The application in which a login last began; `undefined` before the first one, and under Connect. */
  #application: WeakRef<object> | undefined;

  constructor(identity: StrategyIdentity) {
    this.identity = identity;
    const { name, callbackURL } = identity;
    this.#callback = /^https?:/i.test(callbackURL) ? new URL(callbackURL).href : undefined;
    this.namesakes = (strategiesNamed.get(name) ?? new Set()).add(this);
    strategiesNamed.set(name, this.namesakes);
    if (this.#callback === undefined) return;
    strategiesAt.set(this.#callback, (strategiesAt.get(this.#callback) ?? new Set()).add(this));
  }

  /** Releases name and callback URL: the strategy is closed. */
  release(): void {
    const { name } = this.identity;
    const sharing = strategiesAt.get(this.#callback ?? '');
    sharing?.delete(this);
    if (sharing?.size === 0) strategiesAt.delete(this.#callback ?? '');
    this.namesakes.delete(this);
    if (this.namesakes.size === 0) strategiesNamed.delete(name);
    if (this.namesakes.size > 1) return;
    for (const key of serviceOfGrant.keys()) if (key.startsWith(`${name} `)) serviceOfGrant.delete(key);
  }

  /**
   * Throws if another service sends its codes to this strategy's callback URL (mix-up). A strategy that only served another
   * application does not count, such as one that an earlier test left open.
   *
   * @throws ConfigurationError
   * @see RFC 9700, 4.4
   */
  refuseSharedCallback(req: IncomingMessage): void {
    const application = applicationOf(req);
    if (application && this.#application?.deref() !== application) this.#application = new WeakRef(application);
    for (const other of strategiesAt.get(this.#callback ?? '') ?? []) {
      if (other.identity.authUrl === this.identity.authUrl) continue;
      if (other.#application && application && other.#application.deref() !== application) continue;
      throw new ConfigurationError(
        'callbackURL: another strategy of this process, for another service, has the same callback URL. A code of the one service could be sent to the other. Give each strategy its own callback URL and route.',
        { option: 'callbackURL', code: 'ERR_SHARED_CALLBACK' },
      );
    }
  }

  /** Returns true if a session's grant is known to be of another service: a login would replace its reference. */
  sharesSession(grantId: string): boolean {
    const { name, service } = this.identity;
    return (serviceOfGrant.get(`${name} ${grantId}`) ?? service) !== service;
  }

  /** Remembers a grant of this service. Needed only while the strategy has namesakes. */
  remember(grantId: string): void {
    const { name, service } = this.identity;
    serviceOfGrant.set(`${name} ${grantId}`, service);
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
