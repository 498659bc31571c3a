import type { IncomingMessage } from 'node:http';
import { fn, wrong } from '../checks.js';

/** Returns further parameters of the authorization request for a login. */
export type AuthorizationParamsReader = (req: IncomingMessage) => Readonly<Record<string, string>>;

/** Parameters that the package sets itself (RFC 6749, 4.1.1; RFC 7636, 4.3). */
const OWN: ReadonlySet<string> = new Set([
  'client_id',
  'client_secret',
  'redirect_uri',
  'response_type',
  'scope',
  'state',
  'code_challenge',
  'code_challenge_method',
]);

/**
 * Reads the option `authorizationParams`. An object is checked at once, the result of a function at each login.
 *
 * @throws ConfigurationError for a value that is not a string, and for a parameter that the package sets itself
 */
export function authorizationParamsReader(option: string, value: unknown): AuthorizationParamsReader {
  if (typeof value === 'function') {
    const read = fn<(req: IncomingMessage) => unknown>(option, value);
    return (req) => checkedParams(option, read(req));
  }
  const params = checkedParams(option, value);
  return () => params;
}

function checkedParams(option: string, value: unknown): Readonly<Record<string, string>> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw wrong(option, 'expected an object of parameters, or a function that returns one');
  }
  const params: Record<string, string> = {};
  for (const [name, text] of Object.entries(value)) {
    if (OWN.has(name)) throw wrong(option, `expected no parameter of the package's own, got ${name}`);
    if (typeof text !== 'string') throw wrong(option, `expected a string for ${name}, got ${typeof text}`);
    params[name] = text;
  }
  return Object.freeze(params);
}
