import { createHash, hkdfSync } from 'node:crypto';
import type { Secret } from '../redaction.js';

/**
 * Seals texts so that only holders of a key can read them, and only in the context that they were sealed for.
 *
 * The form is a compact JWE, `dir` with `A256GCM` (RFC 7516; RFC 7518, 4.5 and 5.3). The content key is derived from
 * the secret, the purpose and the context (HKDF with SHA-256, RFC 5869), so a text that is moved to another context
 * does not open. `kid` says which secret it was.
 */
export class Sealer {
  readonly #purpose: string;
  /** In the order of the secrets. */
  readonly #byKeyId: ReadonlyMap<string, Secret>;

  /** @param secrets The first one seals, all of them open. At least one. */
  constructor(purpose: string, secrets: readonly Secret[]) {
    this.#purpose = purpose;
    // Of two equal secrets it does not matter which one opens.
    this.#byKeyId = new Map(secrets.map((secret) => [this.#keyId(secret), secret]));
  }

  async seal(context: string, text: string): Promise<string> {
    const [first] = this.#byKeyId;
    if (!first) throw new RangeError('A sealer needs at least one secret');
    const [kid, secret] = first;
    const { CompactEncrypt } = await import('jose/jwe/compact/encrypt');
    return await new CompactEncrypt(Buffer.from(text))
      .setProtectedHeader({ alg: 'dir', enc: 'A256GCM', kid })
      .encrypt(this.#contentKey(secret, context));
  }

  /** The text; `undefined` for whatever was not sealed by one of the secrets for this context. */
  async open(context: string, sealed: string): Promise<string | undefined> {
    const { compactDecrypt } = await import('jose/jwe/compact/decrypt');
    const { decodeProtectedHeader } = await import('jose/decode/protected_header');
    try {
      const secret = this.#byKeyId.get(String(decodeProtectedHeader(sealed).kid));
      if (!secret) return undefined;
      const { plaintext } = await compactDecrypt(sealed, this.#contentKey(secret, context), {
        keyManagementAlgorithms: ['dir'],
        contentEncryptionAlgorithms: ['A256GCM'],
      });
      return Buffer.from(plaintext).toString();
    } catch {
      return undefined;
    }
  }

  #keyId(secret: Secret): string {
    return createHash('sha256').update(this.#contentKey(secret, 'key id')).digest('base64url').slice(0, 8);
  }

  #contentKey(secret: Secret, context: string): Uint8Array {
    return new Uint8Array(
      hkdfSync('sha256', secret.reveal(), 'passport-oauth-app', `${this.#purpose}\n${context}`, 32),
    );
  }
}
