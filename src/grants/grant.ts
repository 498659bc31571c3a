import { createHash, hkdfSync, randomBytes, randomInt } from 'node:crypto';
import { ConfigurationError, NotAuthorizedError } from '../errors.js';
import { asOrganizationDomain, subjectOf } from '../oauth/claims.js';
import type { TokenSet } from '../oauth/token-response.js';
import type { Secret } from '../redaction.js';
import type { StoredGrant } from '../stores/token-store.js';
import { loadAhead, succeedOnce } from '../waiting.js';

/** What is known of a grant besides its tokens. Records of earlier versions lack what was not kept then. */
export interface GrantFacts {
  /** The `sub` claim of the access token; for opaque tokens, the `id` of the profile. */
  readonly subject: string | undefined;
  readonly organizationDomain: string | undefined;
  /** The scopes that the service has granted; `undefined` if it is not known. */
  readonly scope: readonly string[] | undefined;
  /** When the user logged in, or the tokens were imported, in epoch milliseconds. */
  readonly createdAt: number | undefined;
  /** When the tokens were refreshed last, in epoch milliseconds; `undefined` before the first refresh. */
  readonly refreshedAt: number | undefined;
  /** When the access token expires, in epoch milliseconds of this machine's clock. */
  readonly expiresAt: number;
  /** When the refresh token expires, in epoch milliseconds; `undefined` if the service does not say. */
  readonly refreshTokenExpiresAt: number | undefined;
}

/** The tokens of one authorization and what belongs to them. Immutable: a refresh creates a new one. Never logged. */
export interface Grant extends GrantFacts {
  readonly accessToken: string;
  /** `undefined` if the service issued none: the grant ends with its access token. */
  readonly refreshToken: string | undefined;
  /** Base address of the organization's API, if the application reads it from token responses. */
  readonly enterpriseUrl?: string | undefined;
  /** The one before `refreshToken`, if that came with an otherwise unusable response. Sent if the service refuses `refreshToken`. */
  readonly previousRefreshToken?: string | undefined;
  /** Origins of the authorization server that has issued it, of a tenant's strategy: no other one gets its tokens. */
  readonly issuedBy?: string | undefined;
  /** Whole lifetime of the access token, in milliseconds. */
  readonly lifetimeMs: number;
  /** Random text of the login. All grants that refreshes derive from one login share it. */
  readonly lineage: string;
  /** Number of token responses since that of the login, which is 0. Of one lineage, the highest generation is the one that the service accepts. */
  readonly generation: number;
  /** The `sub` claim of the access tokens; `undefined` while all were opaque. `subject` may be the application's id then. */
  readonly sub?: string | undefined;
  /** True for a grant of the application, whose token is asked for again without a refresh token. */
  readonly application?: boolean | undefined;
  /** Names the process that got the pair from the service: its dates are by the clock of that one. */
  readonly obtainedBy?: string | undefined;
  /** Until when no process sends the refresh token again, in epoch milliseconds: the token endpoint has failed slowly. */
  readonly retryAt?: number | undefined;
  /** Differs after every write that changes the tokens. */
  readonly version: number;
}

/** Tombstone of a grant that the service has refused. It keeps the version, so that a process with an unsaved successor can replace it. */
export interface EndedGrant extends GrantFacts, Pick<Grant, 'lineage' | 'generation' | 'version'> {
  readonly ended: true;
}

/** What an application may know of a grant: never a token. Records of earlier versions lack what was not kept then. */
export interface GrantSummary extends GrantFacts {
  /** The id that `req.apiClient.grantId` and the option `grantId` have. */
  readonly grantId: string;
  /** True if the service ended the grant, or no token of it is valid: the user must log in again. */
  readonly ended: boolean;
}

/** When a token is refreshed, in milliseconds before it expires. */
export interface RefreshWindow {
  /** Within it, requests wait for a refresh. */
  readonly leewayMs: number;
  /** Within it, a refresh starts in the background. */
  readonly aheadMs: number;
}

/** `fresh`: usable. `due`: usable, but a refresh should start. `expired`: must be refreshed before use. */
export type Freshness = 'fresh' | 'due' | 'expired';

/** Versions are random numbers below this one, not a counter: two processes never write the same version. */
const VERSIONS = 2 ** 47;

/** Limit for an escaped id. A store gets at most 1,024 characters, of which a strategy's name takes up to 192. */
const MAX_ESCAPED_LENGTH = 800;

/** Tokens with a shorter lifetime get a refresh window that is shorter in proportion. */
const FULL_WINDOW_LIFETIME_MS = 20 * 60 * 1000;

/** Fraction of the lifetime after a refresh in which `ahead` is ignored. Prevents refresh loops with short-lived tokens. */
const RESTING_SHARE = 0.1;

/** Largest fraction of the lifetime that `leeway` may take. Leaves time to use the token that a request waited for. */
const MAX_LEEWAY = 0.5;

const FOREVER = Number.POSITIVE_INFINITY;

/**
 * Returns the grant of a token response: of a login, or of a refresh of `before`, from which it keeps what the response lacks.
 *
 * @param now Epoch milliseconds of the token response. @param obtainedBy Names this process.
 */
export function issuedGrant(tokens: TokenSet, now: number, obtainedBy?: string, before?: Grant): Grant {
  const former = before?.accessToken === NO_TOKEN ? undefined : before;
  const isSameRefreshToken = tokens.refreshToken === undefined || tokens.refreshToken === former?.refreshToken;
  const formerEnd = isSameRefreshToken ? former?.refreshTokenExpiresAt : undefined;
  const { refreshTokenLifetimeMs } = tokens;
  // One literal: an object that is spread together takes a third of a kilobyte more, for each grant in the cache.
  return {
    accessToken: tokens.accessToken,
    refreshToken: tokens.refreshToken ?? former?.refreshToken,
    expiresAt: now + tokens.lifetimeMs,
    lifetimeMs: tokens.lifetimeMs,
    organizationDomain: tokens.organizationDomain,
    enterpriseUrl: tokens.enterpriseUrl,
    subject: former?.subject ?? tokens.subject,
    sub: subjectOf(tokens.claims) ?? former?.sub,
    scope: tokens.scope ?? former?.scope,
    createdAt: former ? former.createdAt : now,
    refreshedAt: former && now,
    refreshTokenExpiresAt: refreshTokenLifetimeMs === undefined ? formerEnd : now + refreshTokenLifetimeMs,
    issuedBy: former ? former.issuedBy : tokens.issuedBy,
    lineage: former?.lineage ?? randomBytes(12).toString('base64url'),
    generation: former ? former.generation + 1 : 0,
    application: before?.application,
    obtainedBy,
    version: randomInt(1, VERSIONS),
  };
}

/** The access token of {@link emptyGrant}, which no store has. */
export const NO_TOKEN = '';

/** Returns a grant of the application that has no token yet. It has expired. */
export function emptyGrant(): Grant {
  const lifetimes = { lifetimeMs: 0, renewableLifetimeMs: 0, refreshTokenLifetimeMs: undefined };
  const tokens = { accessToken: NO_TOKEN, refreshToken: undefined, ...lifetimes };
  const facts = { scope: undefined, claims: {}, subject: undefined, organizationDomain: undefined, params: {} };
  return { ...issuedGrant({ ...tokens, ...facts }, 0), application: true };
}

/** Returns the grant with the refresh token of an otherwise unusable response, and the former one: a proxy may have made up the new one. */
export function withRotatedRefreshToken(grant: Grant, refreshToken: string, previousRefreshToken: string): Grant {
  const version = randomInt(1, VERSIONS);
  const generation = grant.generation + 1;
  return { ...grant, refreshToken, previousRefreshToken, refreshTokenExpiresAt: undefined, generation, version };
}

/** Returns the tokens of a login that brought no refresh token, with that of the grant before it. @param now Epoch milliseconds. */
export function withRefreshTokenOf(grant: Grant, tokens: TokenSet, now: number): TokenSet {
  const { refreshToken, refreshTokenExpiresAt } = grant;
  const lifetimeMs = refreshToken === undefined ? tokens.lifetimeMs : tokens.renewableLifetimeMs;
  const refreshTokenLifetimeMs = refreshTokenExpiresAt && refreshTokenExpiresAt - now;
  return { ...tokens, refreshToken, lifetimeMs, refreshTokenLifetimeMs };
}

function factsOf(grant: Partial<GrantFacts> & Pick<GrantFacts, 'expiresAt'>): GrantFacts {
  const { subject, organizationDomain, scope, createdAt, refreshedAt, expiresAt, refreshTokenExpiresAt } = grant;
  return { subject, organizationDomain, scope, createdAt, refreshedAt, expiresAt, refreshTokenExpiresAt };
}

/** Returns the tombstone of a grant that the service has refused. */
export function endedGrant(grant: Grant): EndedGrant {
  const { lineage, generation, version } = grant;
  return { ended: true, ...factsOf(grant), lineage, generation, version };
}

/** Returns what an application may know of a grant. @param now Epoch milliseconds. */
export function summaryOf(grantId: string, grant: Grant | EndedGrant, now: number): GrantSummary {
  return { grantId, ...factsOf(grant), ended: isUnusable(grant, now) };
}

/** Returns true if both come from one login, and `one` was refreshed less often: the service no longer accepts it. */
export function isOlder(one: Grant | EndedGrant, other: Grant): boolean {
  return one.lineage === other.lineage && one.generation < other.generation;
}

/** Returns true if both come from one refresh token, and `grant` was issued later: two processes refreshed at once, without a lock. */
export function isLaterSibling(grant: Grant, stored: Grant): boolean {
  const isSibling = stored.lineage === grant.lineage && stored.generation === grant.generation;
  return isSibling && grant.expiresAt - grant.lifetimeMs > stored.expiresAt - stored.lifetimeMs;
}

/** Returns true if the grant's refresh token has expired, by the service's own statement. @param now Epoch milliseconds. */
export function isPastEnd({ refreshTokenExpiresAt }: GrantFacts, now: number): boolean {
  return refreshTokenExpiresAt !== undefined && refreshTokenExpiresAt <= now;
}

function isRenewable({ application, refreshToken, refreshTokenExpiresAt }: Grant, now: number): boolean {
  return application === true || (refreshToken !== undefined && (refreshTokenExpiresAt ?? FOREVER) > now);
}

/** Returns true if the grant cannot be used, nor refreshed. @param now Epoch milliseconds. */
export function isUnusable(grant: Grant | EndedGrant, now: number): boolean {
  return 'ended' in grant || (grant.expiresAt <= now && !isRenewable(grant, now));
}

/**
 * Returns how fresh the grant is, by the token that expires first: the access token, or the refresh token that replaces it. An
 * access token that nothing can replace, or that another authorization server issued, serves until it expires.
 *
 * @param now Epoch milliseconds. @param origin Of the authorization server.
 */
export function freshness(grant: Grant, now: number, { leewayMs, aheadMs }: RefreshWindow, origin: string): Freshness {
  const { lifetimeMs, expiresAt, refreshTokenExpiresAt = FOREVER } = grant;
  if (!isRenewable(grant, now) || !isIssuer(grant.issuedBy, origin)) return expiresAt <= now ? 'expired' : 'fresh';
  const issuedAt = expiresAt - lifetimeMs;
  let result: Freshness = 'fresh';
  for (const end of [expiresAt, refreshTokenExpiresAt]) {
    const [leftMs, wholeMs] = [end - now, end - issuedAt];
    const share = Math.min(1, wholeMs / FULL_WINDOW_LIFETIME_MS);
    if (leftMs <= Math.min(leewayMs * share, wholeMs * MAX_LEEWAY)) return 'expired';
    const isResting = grant.generation > 0 && leftMs > wholeMs * (1 - RESTING_SHARE);
    if (leftMs <= aheadMs * share && !isResting) result = 'due';
  }
  return result;
}

/** Returns true if tokens may be sent to an origin. @param issuedBy The origins that issued them; `undefined` if not recorded */
export function isIssuer(issuedBy: string | undefined, origin: string): boolean {
  return issuedBy === undefined || issuedBy.split(' ').includes(origin);
}

/** Returns the error for a grant that was not issued by the tenant's current authorization server. */
export function tenantChanged(): NotAuthorizedError {
  return new NotAuthorizedError(
    'The authorization server of this tenant is not the one that issued the grant, so the refresh token was not sent. The grant is kept. Log in again, or correct what resolve returns.',
    { code: 'ERR_TENANT_CHANGED' },
  );
}

/** Returns whether a grant and a token response are of one user, if known. Never compares a `sub` claim with the application's id. */
export function isSameUser(grant: Grant, tokens: TokenSet): boolean | undefined {
  const sub = subjectOf(tokens.claims);
  if (sub !== undefined && grant.sub !== undefined) return sub === grant.sub;
  const isKnown = sub === undefined && grant.sub === undefined && grant.subject !== undefined;
  return isKnown && tokens.subject !== undefined ? tokens.subject === grant.subject : undefined;
}

/** Returns true if both grants hold the same tokens. */
export function hasSameTokens(one: Grant, other: Grant): boolean {
  return one.accessToken === other.accessToken && one.refreshToken === other.refreshToken;
}

/** Returns true if a value of the session can be an id of 256 random bits, in base64url. */
export function isRandomGrantId(value: unknown): value is string {
  return typeof value === 'string' && /^[\w-]{43}$/.test(value);
}

/** Returns an id of the application, checked. @throws ConfigurationError unless it is well-formed, and 1 to 800 characters escaped */
export function checkedGrantId(value: unknown): string {
  if (typeof value === 'string' && value.length > 0 && value.length <= MAX_ESCAPED_LENGTH && value.isWellFormed()) {
    if (encodeURIComponent(value).length <= MAX_ESCAPED_LENGTH) return value;
  }
  throw new ConfigurationError(
    `grantId: expected a text of 1 to ${MAX_ESCAPED_LENGTH} characters (escaped) that is the same for each request of the user, got ` +
      (typeof value === 'string' ? `a text of ${value.length} characters` : typeof value),
    { option: 'grantId' },
  );
}

/** Like {@link checkedGrantId}, for a new grant: refuses the text of a missing value, since all users without it would share the grant. */
export function newGrantId(value: unknown): string {
  const id = checkedGrantId(value);
  if (!/^(?:undefined|UNDEFINED|NaN|\[object \w+\])$/.test(id)) return id;
  throw new ConfigurationError(
    `grantId: expected an id that differs for each user, got the text ${id}: the value it was made of is missing`,
    { option: 'grantId' },
  );
}

const loadJwe = succeedOnce(() =>
  Promise.all([
    import('jose/jwe/compact/encrypt'),
    import('jose/jwe/compact/decrypt'),
    import('jose/decode/protected_header'),
  ]),
);

/**
 * Encodes grants as records of a token store, and decodes them.
 *
 * With keys, a record is encrypted as a compact JWE: `dir` with `A256GCM` (RFC 7516; RFC 7518, sections 4.5 and 5.3).
 * The content key is derived from the secret and the id in the store (HKDF with SHA-256, RFC 5869), so a record that is
 * moved to another id does not decrypt. The header `kid` names the secret.
 *
 * Without keys, a record is JSON in base64url: a logged request, which has the session store, prints no tokens.
 */
export class GrantCodec {
  /** By key id, in the order of the option. The first encrypts, all decrypt. */
  readonly #keys: ReadonlyMap<string, Secret>;

  constructor(encryptionKeys: readonly Secret[]) {
    const idOf = (key: Uint8Array) => createHash('sha256').update(key).digest('base64url').slice(0, 8);
    if (encryptionKeys.length > 0) loadAhead(loadJwe);
    this.#keys = new Map(encryptionKeys.map((secret) => [idOf(contentKey(secret, 'key id')), secret]));
  }

  /** Returns the record for the grant. @param id The id in the store: the record decodes under no other. */
  async encode(id: string, grant: Grant | EndedGrant): Promise<StoredGrant> {
    const { version, ...content } = grant;
    return { version, expiresAt: grant.expiresAt, sealed: await this.seal(id, JSON.stringify({ id, ...content })) };
  }

  /** Returns the grant; `undefined` if the record is damaged, moved, encrypted with an unknown key, or not encrypted despite keys. */
  async decode(id: string, record: unknown): Promise<Grant | EndedGrant | undefined> {
    const { sealed, version } = Object(record) as Partial<Readonly<Record<string, unknown>>>;
    if (typeof sealed !== 'string' || typeof version !== 'number' || !Number.isSafeInteger(version)) return undefined;
    const text = await this.open(id, sealed);
    try {
      return text === undefined ? undefined : grantFrom(id, Object(JSON.parse(text)), version);
    } catch {
      return undefined;
    }
  }

  /** Returns a text as it is stored under an id. */
  async seal(id: string, text: string): Promise<string> {
    const [key] = this.#keys;
    if (!key) return Buffer.from(text).toString('base64url');
    const [kid, secret] = key;
    const [{ CompactEncrypt }] = await loadJwe();
    return await new CompactEncrypt(Buffer.from(text))
      .setProtectedHeader({ alg: 'dir', enc: 'A256GCM', kid })
      .encrypt(contentKey(secret, id));
  }

  /** Returns a text that {@link seal} has returned for an id. Without keys, any id will do. */
  async open(id: string, sealed: string): Promise<string | undefined> {
    if (this.#keys.size === 0) return /^[\w-]+$/.test(sealed) ? Buffer.from(sealed, 'base64url').toString() : undefined;
    const [, { compactDecrypt }, { decodeProtectedHeader }] = await loadJwe();
    try {
      const secret = this.#keys.get(String(decodeProtectedHeader(sealed).kid));
      if (!secret) return undefined;
      const { plaintext } = await compactDecrypt(sealed, contentKey(secret, id), {
        keyManagementAlgorithms: ['dir'],
        contentEncryptionAlgorithms: ['A256GCM'],
      });
      return Buffer.from(plaintext).toString();
    } catch {
      return undefined;
    }
  }
}

function contentKey(secret: Secret, context: string): Uint8Array {
  return new Uint8Array(hkdfSync('sha256', secret.reveal(), 'passport-oauth-app', `grant\n${context}`, 32));
}

/** What a record may hold, before it is checked. */
type Content = Partial<Omit<Grant, 'version'>> & { readonly id?: unknown; readonly ended?: unknown };

const TEXTS = [
  ...(['lineage', 'accessToken', 'refreshToken', 'previousRefreshToken', 'subject'] as const),
  ...(['enterpriseUrl', 'obtainedBy', 'issuedBy'] as const),
];
const NUMBERS = [
  ...(['generation', 'expiresAt', 'lifetimeMs', 'retryAt'] as const),
  ...(['createdAt', 'refreshedAt', 'refreshTokenExpiresAt'] as const),
];

/** @throws TokenResponseError if the organization's domain is invalid */
function grantFrom(id: string, content: Content, version: number): Grant | EndedGrant | undefined {
  if (content.id !== id) return undefined;
  for (const name of TEXTS) if (content[name] !== undefined && typeof content[name] !== 'string') return undefined;
  for (const name of NUMBERS)
    if (content[name] !== undefined && !(Number.isFinite(content[name]) && content[name] >= 0)) return undefined;
  const { lineage, generation, expiresAt, accessToken, lifetimeMs, scope } = content;
  if (lineage === undefined || generation === undefined || expiresAt === undefined) return undefined;
  if (scope !== undefined && !Array.isArray(scope)) return undefined;
  for (const name of scope ?? []) if (typeof name !== 'string') return undefined;
  // Decides which host gets the token, so it is checked on each read.
  // Other writers may state none as null or ''.
  const { organizationDomain: domain } = content;
  const organizationDomain = (domain ?? '') === '' ? undefined : asOrganizationDomain(domain);
  if (content.ended === true)
    return { ended: true, ...factsOf({ ...content, organizationDomain, expiresAt }), lineage, generation, version };
  if (accessToken === undefined || lifetimeMs === undefined || !/^[\x21-\x7e]+$/.test(accessToken)) return undefined;
  return {
    accessToken,
    refreshToken: content.refreshToken,
    previousRefreshToken: content.previousRefreshToken,
    expiresAt,
    lifetimeMs,
    organizationDomain,
    enterpriseUrl: content.enterpriseUrl,
    subject: content.subject,
    scope,
    createdAt: content.createdAt,
    refreshedAt: content.refreshedAt,
    refreshTokenExpiresAt: content.refreshTokenExpiresAt,
    issuedBy: content.issuedBy,
    lineage,
    generation,
    sub: content.sub,
    application: content.application === true || undefined,
    obtainedBy: content.obtainedBy,
    retryAt: content.retryAt,
    version,
  };
}
