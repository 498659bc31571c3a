import { OAuthAppError, ServiceUnavailableError } from '../errors.js';
import { safeCause } from '../redaction.js';

/** Reports that a request or a job is for no known tenant. */
export class TenantError extends OAuthAppError {
  override readonly name = 'TenantError';
}

/** Returns the error of a request without a known tenant. */
export function unknownTenant(): TenantError {
  return new TenantError('No such tenant: tenantOf found none in this request, or resolve does not know it.', {
    code: 'ERR_UNKNOWN_TENANT',
    status: 404,
  });
}

/** Returns the error of a directory that fails. */
export function tenantUnavailable(cause: unknown): ServiceUnavailableError {
  return new ServiceUnavailableError('The directory of tenants failed: resolve threw, or took too long. Try again.', {
    code: 'ERR_TENANT_UNAVAILABLE',
    cause: safeCause(cause),
  });
}
