import type { IncomingMessage, ServerResponse } from 'node:http';
import type { CredentialSource } from '../api/credential-source.js';
import type { Application } from '../application.js';
import { ConfigurationError, OAuthAppError } from '../errors.js';
import { FailedSource, GrantSource, NoGrantSource } from '../grants/grant-source.js';
import { safeCause } from '../safe-cause.js';
import { applicationOf, type Strategy } from '../strategy.js';

/** A handler that Express 4, Express 5 and Connect all take. */
export type Handler = (req: IncomingMessage, res: ServerResponse, next: (error?: unknown) => void) => void;

/** Options of {@link apiClient}. */
export interface ApiClientOptions {
  /** The request's property that gets the client. Default `'apiClient'`. */
  readonly property?: string | undefined;
}

const noGrant = new NoGrantSource();

/**
 * Middleware that finds the request's grant, refreshes it if it is due, and attaches an `ApiClient`. Always attaches
 * one: where there is no grant, or where it cannot be had now, its calls reject with the reason.
 *
 * Stands after the session and Passport, and before the routes of login and callback.
 *
 * @throws ConfigurationError for anything but a Strategy of this package, or a property that is no name
 */
export function apiClient(strategy: Strategy, { property = 'apiClient' }: ApiClientOptions = {}): Handler {
  const application = applicationOf(strategy);
  if (typeof property !== 'string' || property === '') {
    throw new ConfigurationError('property: expected the name of a property of the request', { option: 'property' });
  }
  return function attachApiClient(req, res, next) {
    application.rememberResponse(req, res);
    const source = findSource(application, req);
    Reflect.set(req, property, application.clientOf(source));
    // `prepare` never rejects: what goes wrong is told by the client's calls.
    const pending = source instanceof GrantSource ? source.prepare() : undefined;
    if (pending === undefined) next();
    else pending.then(() => next());
  };
}

function findSource(application: Application, req: IncomingMessage): CredentialSource {
  try {
    const grantId = application.grantIdOf(req);
    if (grantId === undefined) return noGrant;
    const keeper = application.keeperFor(req);
    return keeper ? application.sourceFor(req, keeper, grantId) : new FailedSource(noStore());
  } catch (error) {
    return new FailedSource(error instanceof OAuthAppError ? error : grantIdThrew(error));
  }
}

function noStore(): ConfigurationError {
  return new ConfigurationError(
    'tokenStore: the request has a grant, but neither the option nor the session leads to a store.',
    {
      option: 'tokenStore',
      code: 'ERR_NO_TOKEN_STORE',
    },
  );
}

function grantIdThrew(error: unknown): ConfigurationError {
  return new ConfigurationError('grantId: the function threw instead of returning an id', {
    option: 'grantId',
    cause: safeCause(error),
  });
}
