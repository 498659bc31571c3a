import type { Application, Applications } from './applications.js';
import { type Query, single } from './query.js';

/** An authorization request in which everything is in order. @see service.md section 4.1 */
export interface AuthorizationRequest {
  readonly application: Application;
  readonly redirectUri: string;
  readonly scopes: readonly string[];
  readonly state: string | undefined;
  readonly challenge: string | undefined;
  /** The parameters as they came, for the consent page to send along. */
  readonly parameters: Readonly<Record<string, string>>;
}

/**
 * What becomes of an authorization request: it goes to the user, or back to the application with an error, or nowhere
 * because it cannot be trusted to name the application's own URL.
 */
export type Judgement =
  | { readonly kind: 'ask'; readonly request: AuthorizationRequest }
  | {
      readonly kind: 'return';
      readonly redirectUri: string;
      readonly state: string | undefined;
      readonly error: string;
      readonly description: string;
    }
  | { readonly kind: 'refuse'; readonly error: string; readonly description: string };

/** Names of scopes and what they mean to a user. */
export type Scopes = Readonly<Record<string, string>>;

const names = [
  'client_id',
  'redirect_uri',
  'response_type',
  'scope',
  'state',
  'code_challenge',
  'code_challenge_method',
];

/**
 * Judges an authorization request.
 *
 * service.md shows no other error than `access_denied`. For everything else this follows RFC 6749, 4.1.2.1: with a wrong client or
 * redirect URL nobody is redirected; any other mistake goes back to the application as `error`.
 *
 * @param query - `undefined` if its encoding was broken.
 * @param known - The scopes that exist; `undefined` accepts every well-formed name, as service.md does not list them.
 * @see service.md sections 4.1 and 7
 */
export function judge(query: Query | undefined, applications: Applications, known: Scopes | undefined): Judgement {
  if (query === undefined) return refused('The percent-encoding of the query is broken.');
  const application = applications.find(single(query, 'client_id') ?? '');
  if (application === undefined)
    return refused(about(query, 'client_id', 'is not the client ID of a registered application'));
  const redirectUri = single(query, 'redirect_uri');
  if (redirectUri === undefined || !application.redirectUrls.includes(redirectUri)) {
    return refused(
      about(query, 'redirect_uri', 'is not one of the redirect URLs that are registered with the application'),
    );
  }
  const mistake = mistakeIn(query, known);
  if (mistake !== undefined) return { kind: 'return', redirectUri, state: single(query, 'state'), ...mistake };
  return { kind: 'ask', request: accepted(query, application, redirectUri) };
}

function refused(description: string): Judgement {
  return { kind: 'refuse', error: 'invalid_request', description };
}

function about(query: Query, name: string, otherwise: string): string {
  if (!Object.hasOwn(query, name)) return `The parameter ${name} is missing.`;
  return single(query, name) === undefined
    ? `The parameter ${name} came more than once.`
    : `The parameter ${name} ${otherwise}.`;
}

interface Mistake {
  readonly error: string;
  readonly description: string;
}

function mistakeIn(query: Query, known: Scopes | undefined): Mistake | undefined {
  const repeated = names.find((name) => Object.hasOwn(query, name) && single(query, name) === undefined);
  if (repeated !== undefined) return invalid(`The parameter ${repeated} came more than once.`);
  const responseType = single(query, 'response_type');
  if (responseType === undefined) return invalid('The parameter response_type is missing.');
  if (responseType !== 'code') {
    return { error: 'unsupported_response_type', description: 'response_type must be code.' };
  }
  return scopeMistake(single(query, 'scope'), known) ?? challengeMistake(query);
}

function invalid(description: string): Mistake {
  return { error: 'invalid_request', description };
}

function scopeMistake(scope: string | undefined, known: Scopes | undefined): Mistake | undefined {
  if (scope === undefined) return invalid('The parameter scope is missing.');
  const scopes = scopesOf(scope);
  // The characters of a scope name, RFC 6749, 3.3. Quotation marks are not among them, as service.md says too.
  const wellFormed = scopes.length > 0 && scopes.every((name) => /^[\x21\x23-\x5b\x5d-\x7e]+$/.test(name));
  const understood = known === undefined || scopes.every((name) => Object.hasOwn(known, name));
  if (wellFormed && understood) return undefined;
  return { error: 'invalid_scope', description: 'scope must hold known scope names, separated by spaces.' };
}

function challengeMistake(query: Query): Mistake | undefined {
  const challenge = single(query, 'code_challenge');
  const method = single(query, 'code_challenge_method');
  if (challenge === undefined && method === undefined) return undefined;
  if (method !== 'S256') return invalid('code_challenge_method must be S256.');
  const wellFormed = challenge !== undefined && /^[\w-]{43}$/.test(challenge);
  return wellFormed ? undefined : invalid('code_challenge must be a SHA-256 hash in base64url.');
}

function accepted(query: Query, application: Application, redirectUri: string): AuthorizationRequest {
  return {
    application,
    redirectUri,
    scopes: scopesOf(single(query, 'scope') ?? ''),
    state: single(query, 'state'),
    challenge: single(query, 'code_challenge'),
    parameters: Object.fromEntries(
      names.flatMap((name) => {
        const value = single(query, name);
        return value === undefined ? [] : [[name, value]];
      }),
    ),
  };
}

function scopesOf(scope: string): readonly string[] {
  return [...new Set(scope.split(' ').filter((name) => name !== ''))];
}
