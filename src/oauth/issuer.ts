import { NotAuthorizedError } from '../errors.js';

/** Returns true if tokens may be sent to an origin. @param issuedBy The origins that issued them; `undefined` if that is not kept. */
export function isIssuer(issuedBy: string | undefined, origin: string): boolean {
  return issuedBy === undefined || issuedBy.split(' ').includes(origin);
}

/** Returns the error of a grant that another authorization server has issued than that of its tenant now. */
export function tenantChanged(): NotAuthorizedError {
  return new NotAuthorizedError(
    'The authorization server of this tenant is not the one that issued the grant, so the refresh token was not sent. The grant is kept. Log in again, or correct what resolve returns.',
    { code: 'ERR_TENANT_CHANGED' },
  );
}
