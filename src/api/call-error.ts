import { ServiceUnavailableError } from '../errors.js';
import type { TransportError } from '../http/transport-error.js';
import type { ApiError } from './api-error.js';
import { shown, unusableAnswer } from './error-message.js';

/** What a caller gets for a call that brought no usable answer. */
export function callError(fault: TransportError, method: string, path: string): ServiceUnavailableError | ApiError {
  if (fault.kind === 'too-large' || fault.kind === 'encoding' || fault.kind === 'protocol') {
    return unusableAnswer(`${fault.message}.`, { data: undefined, headers: {}, method, path, cause: fault });
  }
  const code = fault.kind === 'timeout' ? 'ERR_SERVICE_TIMEOUT' : 'ERR_SERVICE_UNAVAILABLE';
  return new ServiceUnavailableError(`${method} ${shown(path)}: ${fault.message}.`, { code, cause: fault });
}
