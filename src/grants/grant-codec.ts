import { createHash, hkdfSync } from 'node:crypto';
import { asOrganizationDomain } from '../oauth/claims.js';
import type { Secret } from '../redaction.js';
import type { StoredGrant } from '../stores/token-store.js';
import type { EndedGrant, Grant } from './grant.js';

/**
 * Encodes grants as records of a token store, and decodes them.
 *
 * With keys, a record is encrypted as a compact JWE: `dir` with `A256GCM` (RFC 7516; RFC 7518, sections 4.5 and 5.3).
 * The content key is derived from the secret and the id in the store (HKDF with SHA-256, RFC 5869), so a record that is
 * moved to another id does not decrypt. The header `kid` names the secret.
 *
 * Without keys, a record is JSON in base64url. That protects nothing from readers of the store. It keeps tokens out of
 * a log of a request, which prints the session store (`req.sessionStore`) with it.
 */
export class GrantCodec {
  /** By key id, in the order of the option. The first encrypts, all decrypt. */
  readonly #keys: ReadonlyMap<string, Secret>;

  constructor(encryptionKeys: readonly Secret[]) {
    this.#keys = new Map(encryptionKeys.map((secret) => [keyIdOf(secret), secret]));
  }

  /** Returns the record for the grant. @param id The id in the store. The record decodes under this id only, also in a store that ignores case. */
  async encode(id: string, grant: Grant | EndedGrant): Promise<StoredGrant> {
    const { version, ...content } = grant;
    const text = JSON.stringify({ id, ...content });
    const [key] = this.#keys;
    const sealed = key ? await encrypt(key, id, text) : Buffer.from(text).toString('base64url');
    return { version, expiresAt: grant.expiresAt, sealed };
  }

  /** Returns the grant, or `undefined` if the record is damaged, moved, encrypted with an unknown key, or not encrypted although keys are set. */
  async decode(id: string, record: unknown): Promise<Grant | EndedGrant | undefined> {
    if (!isRecord(record) || typeof record.sealed !== 'string') return undefined;
    const { sealed, version } = record;
    if (typeof version !== 'number' || !Number.isSafeInteger(version)) return undefined;
    const text = this.#keys.size > 0 ? await this.#decrypt(id, sealed) : fromBase64url(sealed);
    return text === undefined ? undefined : parseGrant(id, text, version);
  }

  async #decrypt(id: string, sealed: string): Promise<string | undefined> {
    const { compactDecrypt } = await import('jose/jwe/compact/decrypt');
    const { decodeProtectedHeader } = await import('jose/decode/protected_header');
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

async function encrypt([kid, secret]: readonly [string, Secret], id: string, text: string): Promise<string> {
  const { CompactEncrypt } = await import('jose/jwe/compact/encrypt');
  return await new CompactEncrypt(Buffer.from(text))
    .setProtectedHeader({ alg: 'dir', enc: 'A256GCM', kid })
    .encrypt(contentKey(secret, id));
}

function contentKey(secret: Secret, context: string): Uint8Array {
  return new Uint8Array(hkdfSync('sha256', secret.reveal(), 'passport-oauth-app', `grant\n${context}`, 32));
}

function keyIdOf(secret: Secret): string {
  return createHash('sha256').update(contentKey(secret, 'key id')).digest('base64url').slice(0, 8);
}

function fromBase64url(text: string): string | undefined {
  return /^[\w-]+$/.test(text) ? Buffer.from(text, 'base64url').toString() : undefined;
}

function parseGrant(id: string, text: string, version: number): Grant | EndedGrant | undefined {
  try {
    const content: unknown = JSON.parse(text);
    if (!isRecord(content) || content.id !== id) return undefined;
    const { lineage, generation, expiresAt } = content;
    if (typeof lineage !== 'string' || !isCount(generation) || !isCount(expiresAt)) return undefined;
    const origin = { lineage, generation, expiresAt, version };
    if (content.ended === true) return { ...origin, ended: true };
    const { accessToken, refreshToken, previousRefreshToken, subject, lifetimeMs, retryAt } = content;
    if (typeof accessToken !== 'string' || !/^[\x21-\x7e]+$/.test(accessToken) || !isCount(lifetimeMs))
      return undefined;
    if (!isOptionalText(refreshToken) || !isOptionalText(previousRefreshToken) || !isOptionalText(subject))
      return undefined;
    return {
      ...origin,
      accessToken,
      refreshToken,
      ...(previousRefreshToken === undefined ? {} : { previousRefreshToken }),
      ...(isCount(retryAt) ? { retryAt } : {}),
      lifetimeMs,
      // Decides which host gets the token, so it is checked on each read.
      organizationDomain: asOrganizationDomain(content.organizationDomain),
      subject,
    };
  } catch {
    return undefined;
  }
}

function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isFinite(value) && value >= 0;
}

function isOptionalText(value: unknown): value is string | undefined {
  return value === undefined || typeof value === 'string';
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
