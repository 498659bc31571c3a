import type { IncomingMessage, ServerResponse } from 'node:http';
import type { CredentialSource } from '../api/credential-source.js';
import type { Application } from '../application.js';
import { ConfigurationError, OAuthAppError } from '../errors.js';
import { FailedSource, GrantSource, NoGrantSource } from '../grants/grant-source.js';
import { safeCause } from '../safe-cause.js';

const noGrant = new NoGrantSource();

/** Finds the request's grant, and attaches a client for it. @returns `undefined` if the grant was at hand; else a promise that never rejects */
export function attachClient(
  application: Application,
  req: IncomingMessage,
  res: ServerResponse,
  property: string,
): Promise<void> | undefined {
  application.rememberResponse(req, res);
  const source = findSource(application, req);
  application.attachClient(req, property, source);
  // `prepare` never rejects: what goes wrong is told by the client's calls.
  return source instanceof GrantSource ? source.prepare() : undefined;
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
