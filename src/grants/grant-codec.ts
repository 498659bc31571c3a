import { asOrganizationDomain } from '../oauth/claims.js';
import type { Secret } from '../redaction.js';
import type { StoredGrant } from '../stores/token-store.js';
import type { Grant } from './grant.js';
import { Sealer } from './grant-sealer.js';

/**
 * Turns grants into records for a store, and back.
 *
 * With keys the record is sealed for its own id. Without, it is JSON in base64url: no protection from whoever has
 * the store, but a log of a request, which drags the application's whole session store along with it
 * (`req.sessionStore`), then shows nobody's tokens.
 */
export class GrantCodec {
  readonly #sealer: Sealer | undefined;

  constructor(encryptionKeys: readonly Secret[]) {
    this.#sealer = encryptionKeys.length > 0 ? new Sealer('grant', encryptionKeys) : undefined;
  }

  /** @param id The id in the store: the record opens under no other one. */
  async write(id: string, grant: Grant): Promise<StoredGrant> {
    const { version, ...content } = grant;
    const text = JSON.stringify(content);
    const sealed = this.#sealer ? await this.#sealer.seal(id, text) : Buffer.from(text).toString('base64url');
    return { version, expiresAt: grant.expiresAt, sealed };
  }

  /** The grant; `undefined` where the record is damaged, moved, sealed with an unknown key, or not sealed though keys are set. */
  async read(id: string, record: unknown): Promise<Grant | undefined> {
    if (!isRecord(record) || typeof record.sealed !== 'string' || !Number.isSafeInteger(record.version))
      return undefined;
    const text = await this.#open(id, record.sealed);
    return text === undefined ? undefined : parseGrant(text, record.version as number);
  }

  async #open(id: string, sealed: string): Promise<string | undefined> {
    if (this.#sealer) return await this.#sealer.open(id, sealed);
    return /^[\w-]+$/.test(sealed) ? Buffer.from(sealed, 'base64url').toString() : undefined;
  }
}

function parseGrant(text: string, version: number): Grant | undefined {
  try {
    const content: unknown = JSON.parse(text);
    return isRecord(content) ? checkGrant(content, version) : undefined;
  } catch {
    return undefined;
  }
}

/** @throws TokenResponseError if the domain is no DNS label: it decides which host gets the token, so it is checked on each read. */
function checkGrant(content: Readonly<Record<string, unknown>>, version: number): Grant | undefined {
  const { organizationDomain, accessToken, refreshToken, previousRefreshToken, subject } = content;
  const { expiresAt, lifetimeMs, refreshes } = content;
  if (typeof accessToken !== 'string' || !/^[\x21-\x7e]+$/.test(accessToken)) return undefined;
  if (!isTextOrNone(refreshToken) || !isTextOrNone(previousRefreshToken) || !isTextOrNone(subject)) return undefined;
  if (!isCount(expiresAt) || !isCount(lifetimeMs) || !isCount(refreshes)) return undefined;
  const domain = asOrganizationDomain(organizationDomain);
  const former = previousRefreshToken === undefined ? {} : { previousRefreshToken };
  const tokens = { accessToken, refreshToken, ...former, expiresAt, lifetimeMs };
  return { ...tokens, organizationDomain: domain, subject, refreshes, version };
}

function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isFinite(value) && value >= 0;
}

function isTextOrNone(value: unknown): value is string | undefined {
  return value === undefined || typeof value === 'string';
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
