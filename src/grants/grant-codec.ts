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
    if (!key) return { version, expiresAt: grant.expiresAt, sealed: Buffer.from(text).toString('base64url') };
    const [kid, secret] = key;
    const { CompactEncrypt } = await import('jose/jwe/compact/encrypt');
    const sealed = await new CompactEncrypt(Buffer.from(text))
      .setProtectedHeader({ alg: 'dir', enc: 'A256GCM', kid })
      .encrypt(contentKey(secret, id));
    return { version, expiresAt: grant.expiresAt, sealed };
  }

  /** Returns the grant, or `undefined` if the record is damaged, moved, encrypted with an unknown key, or not encrypted although keys are set. */
  async decode(id: string, record: unknown): Promise<Grant | EndedGrant | undefined> {
    const { sealed, version } = Object(record) as Partial<Readonly<Record<string, unknown>>>;
    if (typeof sealed !== 'string' || typeof version !== 'number' || !Number.isSafeInteger(version)) return undefined;
    if (this.#keys.size > 0) {
      const text = await this.#decrypt(id, sealed);
      return text === undefined ? undefined : parseGrant(id, text, version);
    }
    if (!/^[\w-]+$/.test(sealed)) return undefined;
    return parseGrant(id, Buffer.from(sealed, 'base64url').toString(), version);
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

function contentKey(secret: Secret, context: string): Uint8Array {
  return new Uint8Array(hkdfSync('sha256', secret.reveal(), 'passport-oauth-app', `grant\n${context}`, 32));
}

function keyIdOf(secret: Secret): string {
  return createHash('sha256').update(contentKey(secret, 'key id')).digest('base64url').slice(0, 8);
}

/** What a record may hold, before it is checked. */
type Content = Partial<Omit<Grant, 'version'>> & { readonly id?: unknown; readonly ended?: unknown };

const TEXTS = ['lineage', 'accessToken', 'refreshToken', 'previousRefreshToken', 'subject'] as const;
const COUNTS = ['generation', 'expiresAt', 'lifetimeMs', 'retryAt'] as const;

function parseGrant(id: string, text: string, version: number): Grant | EndedGrant | undefined {
  try {
    const content = Object(JSON.parse(text)) as Content;
    if (content.id !== id) return undefined;
    for (const name of TEXTS) if (content[name] !== undefined && typeof content[name] !== 'string') return undefined;
    for (const name of COUNTS) {
      const count = content[name];
      if (count !== undefined && !(typeof count === 'number' && count >= 0 && count < Number.POSITIVE_INFINITY))
        return undefined;
    }
    const { lineage, generation, expiresAt, accessToken, lifetimeMs, organizationDomain } = content;
    if (lineage === undefined || generation === undefined || expiresAt === undefined) return undefined;
    if (content.ended === true) return { ended: true, lineage, generation, expiresAt, version };
    if (accessToken === undefined || lifetimeMs === undefined || !/^[\x21-\x7e]+$/.test(accessToken)) return undefined;
    return {
      accessToken,
      refreshToken: content.refreshToken,
      previousRefreshToken: content.previousRefreshToken,
      expiresAt,
      lifetimeMs,
      // Decides which host gets the token, so it is checked on each read.
      organizationDomain: organizationDomain === undefined ? undefined : asOrganizationDomain(organizationDomain),
      subject: content.subject,
      lineage,
      generation,
      retryAt: content.retryAt,
      version,
    };
  } catch {
    return undefined;
  }
}
