import type { CredentialSource } from '../api/api-context.js';
import { cloneError, NotAuthorizedError, type OAuthAppError } from '../errors.js';

/** The source of a request without a grant. */
export const NO_GRANT: CredentialSource = {
  grantId: undefined,
  authorized: false,
  organizationDomain: undefined,
  credential: () =>
    Promise.reject(
      new NotAuthorizedError('No user has authorized this application for this request: the user has to log in first.'),
    ),
};

/** Returns the source of a client that cannot work. Counts as authorized, as nothing else is known. */
export function failedSource(error: OAuthAppError): CredentialSource {
  const credential = () => Promise.reject(cloneError(error));
  return { grantId: undefined, authorized: true, organizationDomain: undefined, credential };
}
