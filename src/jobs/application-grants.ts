import * as check from '../checks.js';
import { ConfigurationError } from '../errors.js';
import type { ApplicationGrant, TokenParameters } from '../oauth/token-endpoint.js';
import { withTimeout } from '../waiting.js';

/** Added to each token request as configured. */
const OF_THE_CLIENT: ReadonlySet<string> = new Set(['client_id', 'client_secret']);

/**
 * Asks the application for the parameters of a token request: anew each time, since an assertion may be good for one request
 * (RFC 7523, 3).
 *
 * @throws ConfigurationError `applicationGrant` if the function throws, takes longer than `timeoutMs`, or returns no parameters
 */
export async function resolveParameters(
  applicationGrant: ApplicationGrant,
  grantId: string,
  timeoutMs: number,
): Promise<TokenParameters | undefined> {
  const asked = (async () => applicationGrant(grantId))();
  const late = () =>
    check.optionError('applicationGrant', `expected a result within the timeout of ${timeoutMs} ms, got none`);
  let given: unknown;
  try {
    given = await withTimeout(asked, timeoutMs, late);
  } catch (error) {
    if (error instanceof ConfigurationError && error.option === 'applicationGrant') throw error;
    throw check.thrownError('applicationGrant', 'parameters', error);
  }
  return given === undefined ? undefined : readParameters(given);
}

function readParameters(given: unknown): TokenParameters {
  if (typeof given !== 'object' || given === null || Array.isArray(given)) throw parametersError(check.kindOf(given));
  const { grant_type, ...others } = Object.fromEntries(
    Object.entries(given).filter(([, value]) => value !== undefined && value !== null),
  );
  if (typeof grant_type !== 'string' || grant_type === '') throw parametersError('none with a grant_type');
  for (const [name, value] of Object.entries(others)) {
    if (OF_THE_CLIENT.has(name)) throw parametersError(`${name}, which is added from the options of the strategy`);
    if (typeof value !== 'string' && !(typeof value === 'number' && Number.isFinite(value)))
      throw parametersError(`${check.kindOf(value)} for ${name}`);
  }
  return { grant_type, ...others };
}

function parametersError(found: string): ConfigurationError {
  const expected = 'expected the parameters of a token request, texts and numbers, among them grant_type';
  return check.optionError('applicationGrant', `${expected}, or undefined for the grant of a user, got ${found}`);
}
