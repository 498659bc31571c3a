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

type Groups = Map<string, Set<OpenStrategy>>;

/** The open strategies of this process by name. */
const strategiesNamed: Groups = new Map();

/** The open strategies of this process by callback URL. */
const strategiesAt: Groups = new Map();

/** Which service issued a grant, by the strategies' name and the grant's id. In the order of the logins. */
const serviceOfGrant = new Map<string, string>();

/** A strategy among the open ones of this process: finds those that share a name or a callback URL and must not. */
export class OpenStrategy {
  /** The open strategies of this name, this one included. */
  readonly namesakes: ReadonlySet<OpenStrategy>;
  readonly name: string;
  readonly #identity: StrategyIdentity;
  /** The callback URL, as URLs compare; `undefined` for one that depends on the request. */
  readonly #callback: string | undefined;
  /** The application in which a login last began; `undefined` before the first one, and under Connect. */
  #application: WeakRef<object> | undefined;

  constructor(identity: StrategyIdentity) {
    this.#identity = identity;
    this.name = identity.name;
    const { name, callbackURL } = identity;
    this.#callback = /^https?:/i.test(callbackURL) ? new URL(callbackURL).href : undefined;
    this.namesakes = join(strategiesNamed, name, this);
    if (this.#callback !== undefined) join(strategiesAt, this.#callback, this);
  }

  /** Releases name and callback URL: the strategy is closed. */
  release(): void {
    const { name } = this.#identity;
    leave(strategiesNamed, name, this);
    if (this.#callback !== undefined) leave(strategiesAt, this.#callback, this);
    if (this.namesakes.size > 1) return;
    for (const key of serviceOfGrant.keys()) if (key.startsWith(`${name} `)) serviceOfGrant.delete(key);
  }

  /**
   * Throws if another service sends its codes to this strategy's callback URL: the browser would bring a code of one service
   * to the other strategy, which redeems it at its own server (mix-up). A strategy that only served another application does
   * not count, such as one that an earlier test left open.
   *
   * @throws ConfigurationError
   * @see RFC 9700, 4.4
   */
  refuseSharedCallback(req: IncomingMessage): void {
    const application = applicationOf(req);
    if (application && this.#application?.deref() !== application) this.#application = new WeakRef(application);
    const sharing = this.#callback === undefined ? undefined : strategiesAt.get(this.#callback);
    if (sharing === undefined || sharing.size === 1) return;
    for (const other of sharing) {
      if (other.#identity.authUrl === this.#identity.authUrl) continue;
      if (other.#application && application && other.#application.deref() !== application) continue;
      throw new ConfigurationError(
        'callbackURL: another strategy of this process, for another service, has the same callback URL. A code of the one service could be sent to the other. Give each strategy its own callback URL and route.',
        { option: 'callbackURL', code: 'ERR_SHARED_CALLBACK' },
      );
    }
  }

  /**
   * Returns true if a session refers, under this strategy's name, to a grant of another service. Each strategy finds only its
   * own grants, but a login with one replaces the reference of the other.
   */
  sharesSession(grantId: string): boolean {
    const { name, service } = this.#identity;
    return (serviceOfGrant.get(`${name} ${grantId}`) ?? service) !== service;
  }

  /** Remembers a grant that a session now refers to. Needed only while the strategy has namesakes. */
  remember(grantId: string): void {
    const { name, service } = this.#identity;
    serviceOfGrant.set(`${name} ${grantId}`, service);
    const [oldest] = serviceOfGrant.keys();
    if (serviceOfGrant.size > MAX_GRANTS && oldest !== undefined) serviceOfGrant.delete(oldest);
  }
}

function join(groups: Groups, key: string, strategy: OpenStrategy): ReadonlySet<OpenStrategy> {
  const group = (groups.get(key) ?? new Set()).add(strategy);
  groups.set(key, group);
  return group;
}

function leave(groups: Groups, key: string, strategy: OpenStrategy): void {
  const group = groups.get(key);
  group?.delete(strategy);
  if (group?.size === 0) groups.delete(key);
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
