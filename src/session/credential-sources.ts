import type { Credential, CredentialSource } from '../api/api-context.js';
import { cloneError, NotAuthorizedError, type OAuthAppError } from '../errors.js';

/** The source of a request without a grant. */
export class NoGrantSource implements CredentialSource {
  readonly grantId = undefined;
  readonly authorized = false;
  readonly organizationDomain = undefined;

  credential(): Promise<Credential> {
    return Promise.reject(
      new NotAuthorizedError('No user has authorized this application for this request: the user has to log in first.'),
    );
  }
}

/** The source of a client that cannot work: each call rejects with the error. Counts as authorized, as nothing else is known. */
export class FailedSource implements CredentialSource {
  readonly grantId = undefined;
  readonly authorized = true;
  readonly organizationDomain = undefined;
  readonly #error: OAuthAppError;

  constructor(error: OAuthAppError) {
    this.#error = error;
  }

  credential(): Promise<Credential> {
    return Promise.reject(cloneError(this.#error));
  }
}

/** Creates the source during a login: tokens that are not stored yet and cannot be refreshed. */
export function fixedSource(credential: Credential): CredentialSource {
  const { organizationDomain, enterpriseUrl, scope } = credential;
  const known = { organizationDomain, enterpriseUrl, scope };
  return { grantId: undefined, authorized: true, ...known, credential: () => credential };
}
