import type { IncomingMessage } from 'node:http';

/** What Passport adds to a request. */
interface WithUser {
  readonly _userProperty?: unknown;
}

/** Returns the user that Passport has logged in. `passport.initialize({ userProperty })` may have renamed the property. */
export function userOf(req: IncomingMessage & WithUser): unknown {
  return Reflect.get(req, typeof req._userProperty === 'string' ? req._userProperty : 'user');
}

/** Sets the user of a request, as Passport would. */
export function setUser(req: IncomingMessage & WithUser, user: unknown): void {
  Reflect.set(req, typeof req._userProperty === 'string' ? req._userProperty : 'user', user);
}

/** Properties that identify a user, the first that is set: of records, of lean documents (MongoDB), of JWT claims. */
const ID_KEYS = ['id', '_id', 'sub', 'username'] as const;

/**
 * Returns a text that identifies a user, or `undefined` if the user has none of the properties `id`, `_id`, `sub` and
 * `username`. A user that is no object is its own id.
 */
export function userIdOf(user: unknown): string | undefined {
  let id: unknown = user;
  if (typeof user === 'object' && user !== null) {
    for (const key of ID_KEYS) {
      id = Reflect.get(user, key);
      if (id !== undefined && id !== null && id !== '') break;
    }
  }
  if (id === undefined || id === null || id === '') return undefined;
  if (typeof id !== 'object') return String(id);
  const text = JSON.stringify(id);
  // An object that shows nothing of itself would be the same for all users.
  return text === undefined || text === '{}' || text === '[]' ? undefined : text;
}
