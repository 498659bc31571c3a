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

/** The fields of a service's answer that make a {@link ServiceProfile}. */
export interface ProfileFields {
  readonly id: unknown;
  readonly username?: unknown;
  readonly displayName?: unknown;
  readonly email?: unknown;
}

/**
 * Returns the profile of a user.
 *
 * @throws TypeError if there is no `id`: users without one would share an identity. A number beyond 2^53 is none,
 *   because JSON.parse rounds it
 */
export function serviceProfile({ id, username, displayName, email }: ProfileFields): ServiceProfile {
  const isId = Number.isSafeInteger(id) || textOf(id) !== undefined;
  if (!isId) {
    throw new TypeError(
      "userProfile: the service's answer names no user (expected a text or an integer). Set the option userProfile to a function of your own that returns { id }.",
    );
  }
  return {
    id: String(id),
    ...(textOf(username) === undefined ? {} : { username: String(username) }),
    ...(textOf(displayName) === undefined ? {} : { displayName: String(displayName) }),
    ...(textOf(email) === undefined ? {} : { emails: [{ value: String(email) }] }),
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
