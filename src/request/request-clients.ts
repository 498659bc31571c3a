import type { IncomingMessage, ServerResponse } from 'node:http';
import { ApiClient, sourceOf } from '../api/api-client.js';
import type { CredentialSource } from '../api/credential.js';
import { ConfigurationError, OAuthAppError } from '../errors.js';
import { safeCause } from '../redaction.js';
import { FailedSource, GrantCredentials, NoGrantSource } from '../refresh/grant-credentials.js';
import type { GrantManager } from '../refresh/grant-manager.js';
import type { GrantManagers } from '../refresh/grant-managers.js';
import type { RequestGrants } from './grant-reference.js';

/** What clients are made with. */
export interface RequestClientsOptions {
  readonly managers: GrantManagers;
  readonly grants: RequestGrants;
  readonly clientOf: (source: CredentialSource) => ApiClient;
}

const noGrant = new NoGrantSource();

/** A request, as something that has properties of any name. */
type WithClients = IncomingMessage & Record<string, unknown>;

/** The API clients of requests, and the responses that belong to them. */
export class RequestClients {
  readonly #options: RequestClientsOptions;
  readonly #responses = new WeakMap<IncomingMessage, ServerResponse>();
  /** The properties of requests that hold a client of this strategy: most often one. */
  readonly #properties: string[] = [];

  constructor(options: RequestClientsOptions) {
    this.#options = options;
  }

  /** Finds the request's grant, and attaches a client for it. @returns `undefined` if the grant was at hand; else a promise that never rejects */
  attach(req: IncomingMessage, res: ServerResponse, property: string): Promise<void> | undefined {
    if (!this.#properties.includes(property)) this.#properties.push(property);
    // For a strategy that will see the request only. Express links the two by itself, Connect does not.
    if (!('res' in req)) this.#responses.set(req, res);
    const source = this.#findSource(req);
    this.#put(req, property, source);
    // `prepare` never rejects: what goes wrong is told by the client's calls.
    return source instanceof GrantCredentials ? source.prepare() : undefined;
  }

  /** Has the request's clients be ones for a grant that has just come to be: for the handlers after a login. Never rejects. */
  async switchTo(req: IncomingMessage, manager: GrantManager, grantId: string): Promise<GrantCredentials> {
    const source = this.#sourceFor(req, manager, grantId);
    await source.prepare();
    for (const property of this.#properties) {
      if (Reflect.get(req, property) instanceof ApiClient) this.#put(req, property, source);
    }
    return source;
  }

  /** Tells the request's clients that the user has logged out. @returns the id of the grant that they had */
  end(req: IncomingMessage): string | undefined {
    const manager = this.#options.managers.for(req);
    const source = manager && this.#attachedSource(req, manager);
    source?.end();
    return source?.grantId;
  }

  /** @throws ConfigurationError where nothing has handed the response over */
  responseOf(req: IncomingMessage): ServerResponse {
    const linked = 'res' in req ? (req.res as ServerResponse | undefined) : undefined;
    const res = linked ?? this.#responses.get(req);
    if (res) return res;
    throw new ConfigurationError(
      'apiClient(strategy) has to stand before the routes of login and callback: under Connect a strategy gets to the response through it alone.',
      { code: 'ERR_NO_RESPONSE' },
    );
  }

  #put(req: IncomingMessage, property: string, source: CredentialSource): void {
    (req as WithClients)[property] = this.#options.clientOf(source);
  }

  #findSource(req: IncomingMessage): CredentialSource {
    const { grants, managers } = this.#options;
    try {
      const grantId = grants.idOf(req);
      if (grantId === undefined) return noGrant;
      const manager = managers.for(req);
      return manager ? this.#sourceFor(req, manager, grantId) : new FailedSource(noStore());
    } catch (error) {
      return new FailedSource(error instanceof OAuthAppError ? error : grantIdThrew(error));
    }
  }

  /** One for all clients of a request: what one of them learns, such as a logout, the others know. */
  #sourceFor(req: IncomingMessage, manager: GrantManager, grantId: string): GrantCredentials {
    const known = this.#attachedSource(req, manager);
    return known?.grantId === grantId ? known : new GrantCredentials(manager, grantId);
  }

  /** Of this strategy: another one may have put its own client in the same place. */
  #attachedSource(req: IncomingMessage, manager: GrantManager): GrantCredentials | undefined {
    for (const property of this.#properties) {
      const client = (req as WithClients)[property];
      const source = client instanceof ApiClient ? sourceOf(client) : undefined;
      if (source instanceof GrantCredentials && source.isAliveIn(manager)) return source;
    }
    return undefined;
  }
}

function noStore(): ConfigurationError {
  return new ConfigurationError(
    'tokenStore: the request has a grant, but neither the option nor the session leads to a store.',
    { option: 'tokenStore', code: 'ERR_NO_TOKEN_STORE' },
  );
}

function grantIdThrew(error: unknown): ConfigurationError {
  return new ConfigurationError('grantId: the function threw instead of returning an id', {
    option: 'grantId',
    cause: safeCause(error),
  });
}
