import type { ApiClient } from '../api/api-client.js';

/** A JSON object of a service. */
export type Fields = Readonly<Record<string, unknown>>;

/** What a provider's `userProfile` adds to the profile, in the terms of Passport's profiles. */
export interface ServiceProfile {
  /** The service's own identifier of the account. */
  readonly id: string;
  readonly username?: string;
  readonly displayName?: string;
  readonly emails?: readonly { readonly value: string }[];
}

/** Names of the fields that make a {@link ServiceProfile}. Those of `displayName` are joined. */
interface ProfileFields {
  readonly id: string;
  readonly username?: string;
  readonly displayName?: string | readonly string[];
  readonly email?: string;
}

/**
 * Returns a `userProfile`. It throws a TypeError if the answer has no `id`: users without one would share an identity. A number
 * beyond 2^53 is none, because JSON.parse rounds it.
 *
 * @param source - Path of the API, or what reads the answer.
 * @param path - Leads to the object with the fields.
 */
export function profileFrom(
  source: string | ((client: ApiClient, tokenResponse: Fields) => unknown),
  names: ProfileFields,
  ...path: readonly string[]
): (client: ApiClient, tokenResponse: Fields) => Promise<ServiceProfile> {
  return async (client, tokenResponse) => {
    const answer = typeof source === 'string' ? client.get(source) : source(client, tokenResponse);
    const fields = fieldsOf(await answer, ...path);
    const textAt = (name = '') => textOf(fields[name]);
    const id = Number.isSafeInteger(fields[names.id]) ? String(fields[names.id]) : textAt(names.id);
    if (id === undefined) {
      throw new TypeError(
        "userProfile: the service's answer names no user (expected a text or an integer). Set the option userProfile to a function of your own that returns { id }.",
      );
    }
    const [username, email] = [textAt(names.username), textAt(names.email)];
    const displayName = textOf([names.displayName ?? []].flat().map(textAt).filter(Boolean).join(' '));
    return {
      id,
      ...(username && { username }),
      ...(displayName && { displayName }),
      ...(email && { emails: [{ value: email }] }),
    };
  };
}

/** Returns the fields of a JSON object, or of the object at a path inside of it; none for any other value. */
export function fieldsOf(body: unknown, ...path: readonly string[]): Fields {
  let value = body;
  for (const name of path) value = fieldsOf(value)[name];
  return typeof value === 'object' && value !== null ? { ...value } : {};
}

/**
 * Returns the claims of an ID token; none for anything else. The signature is not verified: the token comes from the token
 * endpoint itself, over TLS (OpenID Connect Core 1.0, 3.1.3.7, item 6).
 */
export function claimsOf(idToken: unknown): Fields {
  const [, payload = ''] = (textOf(idToken) ?? '').split('.');
  try {
    return fieldsOf(JSON.parse(Buffer.from(payload, 'base64url').toString()));
  } catch {
    // The error of JSON.parse would quote the token.
    return {};
  }
}

/** Returns a text that is not empty. */
export function textOf(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined;
}
