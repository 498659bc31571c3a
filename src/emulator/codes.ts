import { createHash } from 'node:crypto';
import type { Clock, Secrets } from './sources.js';

/** A user's approval of an application. */
export interface Approval {
  readonly clientID: string;
  /** `undefined` for a code that an installation has brought. */
  readonly redirectUri: string | undefined;
  readonly userId: string;
  /** The scopes that the user has granted. */
  readonly scopes: readonly string[];
  /** True if more were asked for: the token response says so (RFC 6749, 5.1). */
  readonly isReduced?: boolean;
  /** The S256 code challenge, if the request had one (RFC 7636, 4.3). */
  readonly challenge: string | undefined;
}

/** The parameters of a code exchange. */
export interface Redemption {
  readonly code: string;
  readonly clientID: string;
  /** `undefined` is not compared: the service may require none. */
  readonly redirectUri: string | undefined;
  readonly verifier: string | undefined;
}

/** The approval that a code stands for, or the reason why it is refused. */
export type Redeemed =
  | { readonly approval: Approval; readonly markUsed: (grantId: number) => void }
  | { readonly refusal: string; readonly grantId?: number | undefined };

/** A code as it is kept. */
export interface IssuedCode {
  readonly approval: Approval;
  readonly expiresAt: number;
  /** The grant that it gave, after its use. */
  grantId: number | undefined;
}

// Bounds the memory of a long test, even if the clock stands still.
const maxCodes = 100_000;

/**
 * Issued authorization codes: single-use, short-lived, bound to client, redirect URL and code challenge.
 *
 * @see service.md sections 4.1 and 4.2; RFC 6749, 4.1.2 and 4.1.3
 */
export class Codes {
  readonly #codes = new Map<string, IssuedCode>();
  readonly #secrets: Secrets;
  readonly #clock: Clock;
  readonly #lifetimeMs: number;

  /** @param lifetime - Seconds. */
  constructor(secrets: Secrets, clock: Clock, lifetime: number) {
    this.#secrets = secrets;
    this.#clock = clock;
    this.#lifetimeMs = lifetime * 1000;
  }

  /** Returns all codes, to be restored in another process. */
  snapshot(): readonly (readonly [code: string, issued: IssuedCode])[] {
    return [...this.#codes];
  }

  /** Replaces all codes. */
  restore(codes: readonly (readonly [code: string, issued: IssuedCode])[]): void {
    this.#codes.clear();
    for (const [code, issued] of codes) this.#codes.set(code, issued);
  }

  issue(approval: Approval): string {
    const now = this.#clock.now();
    // Codes are in the order in which they expire, so the old ones are at the front.
    for (const [code, { expiresAt }] of this.#codes) {
      if (expiresAt > now && this.#codes.size < maxCodes) break;
      this.#codes.delete(code);
    }
    const code = this.#secrets.make();
    this.#codes.set(code, { approval, expiresAt: now + this.#lifetimeMs, grantId: undefined });
    return code;
  }

  /** Returns false for a code that an installation has brought: it has come without a redirect. */
  needsRedirectUri(code: string): boolean {
    const issued = this.#codes.get(code);
    return issued === undefined || issued.approval.redirectUri !== undefined;
  }

  /** Checks a code against everything that it is bound to. Only `markUsed` consumes it: a refused attempt leaves it valid. */
  redeem({ code, clientID, redirectUri, verifier }: Redemption): Redeemed {
    const issued = this.#codes.get(code);
    if (issued === undefined || issued.approval.clientID !== clientID) {
      return { refusal: 'The code is unknown here, or was issued to another application.' };
    }
    if (issued.grantId !== undefined) return { refusal: 'The code was used already.', grantId: issued.grantId };
    if (issued.expiresAt <= this.#clock.now()) return { refusal: 'The code has expired.' };
    if (redirectUri !== undefined && issued.approval.redirectUri !== redirectUri) {
      return { refusal: 'redirect_uri is not the one that was used in the authorization request.' };
    }
    const refusal = verifierRefusal(issued.approval.challenge, verifier);
    if (refusal !== undefined) return { refusal };
    return {
      approval: issued.approval,
      markUsed: (grantId) => {
        issued.grantId = grantId;
      },
    };
  }
}

// Refuses a verifier without a challenge: otherwise PKCE could be stripped from the authorization request (RFC 9700, 4.8.2).
function verifierRefusal(challenge: string | undefined, verifier: string | undefined): string | undefined {
  if (challenge === undefined) {
    return verifier === undefined
      ? undefined
      : 'code_verifier was sent, but the authorization request had no challenge.';
  }
  if (verifier === undefined) return 'code_verifier is missing: the authorization request had a code_challenge.';
  const matches = createHash('sha256').update(verifier).digest('base64url') === challenge;
  return matches ? undefined : 'code_verifier does not match the code_challenge.';
}
