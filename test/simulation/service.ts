/** What the service does when a refresh token is shown that was used already. */
export type Mode = 'refuse' | 'revoke' | 'grace';

export const MODES: readonly Mode[] = ['refuse', 'revoke', 'grace'];

/** How long the service takes the refresh token before once more, with `grace`: services do so for 10 to 60 s. */
const GRACE_MS = 30_000;

/** What one authorization gave, as the service knows it. */
export interface Family {
  readonly id: number;
  /** The user, or the organization that the grant of an application is for. */
  readonly user: string;
  readonly isOfApplication: boolean;
  /** Serial of the refresh token that is good. */
  current: number;
  /** Serial of the one before, where it works once more. */
  previous: number | undefined;
  /** When it no longer does. */
  previousUntil: number;
  isRevoked: boolean;
}

/** A token as its text says: its kind, its family and its serial. */
export interface Token {
  readonly kind: 'refresh' | 'access';
  readonly family: number;
  readonly serial: number;
}

/** A pair that the token endpoint gave. */
export interface Pair {
  readonly family: Family;
  readonly serial: number;
  /** The refresh token that was shown for it; `undefined` for a login. */
  readonly shown: number | undefined;
}

/** How the token endpoint answers. */
export type TokenAnswer =
  | { readonly pair: Pair }
  | { readonly refusal: 'unknown' | 'reused'; readonly token: Token | undefined };

const TOKEN = /([ra])t-(\d+)-(\d+)/g;

/** Returns the tokens that a text holds. */
export function tokensIn(text: string): readonly Token[] {
  return [...text.matchAll(TOKEN)].map(([, kind, family, serial]) => ({
    kind: kind === 'r' ? 'refresh' : 'access',
    family: Number(family),
    serial: Number(serial),
  }));
}

/** The authorization server and the API: tokens that say what they are, so that every mix-up can be seen. */
export class Service {
  readonly #mode: Mode;
  readonly #lifetimeS: number;
  readonly #now: () => number;
  readonly #families: Family[] = [];
  readonly #codes = new Map<string, string>();
  readonly #expiries = new Map<number, number>();
  #serials = 0;

  /** @param now Milliseconds of simulated time. */
  constructor(mode: Mode, lifetimeS: number, now: () => number) {
    this.#mode = mode;
    this.#lifetimeS = lifetimeS;
    this.#now = now;
  }

  family(id: number): Family | undefined {
    return this.#families[id];
  }

  /** Whether the service takes a refresh token, were it shown now. */
  honours(token: Token): boolean {
    const family = this.#families[token.family];
    if (token.kind !== 'refresh' || !family || family.isRevoked) return false;
    return token.serial === family.current || (token.serial === family.previous && this.#now() < family.previousUntil);
  }

  /** Returns the code of an authorization that the user has approved. */
  approve(user: string): string {
    const code = `code-${this.#codes.size}-${user}`;
    this.#codes.set(code, user);
    return code;
  }

  /** Exchanges a code. */
  exchange(code: string): TokenAnswer {
    const user = this.#codes.get(code);
    if (user === undefined || user === '') return { refusal: 'unknown', token: undefined };
    this.#codes.set(code, '');
    return { pair: this.#issue(this.#open(user, false), undefined) };
  }

  /** Gives the application itself a token for an organization. */
  requestTokens(organization: string): TokenAnswer {
    return { pair: this.#issue(this.#open(organization, true), undefined) };
  }

  /** Revokes a token, and with a refresh token its grant. Returns the family that this ends. @see RFC 7009, 2.2: any other token is no error */
  revoke(text: string): Family | undefined {
    const token = tokensIn(text)[0];
    const family = token && this.#families[token.family];
    const isGood = token?.kind === 'access' ? this.bearer(text) !== undefined : token && this.honours(token);
    if (!family || !isGood) return undefined;
    family.isRevoked = true;
    return family;
  }

  /** Ends all access tokens of an organization, without a word to the application. */
  refuse(organization: string): void {
    for (const family of this.#families) if (family.user === organization) family.isRevoked = true;
  }

  /** Exchanges a refresh token. */
  refresh(text: string): TokenAnswer {
    const token = tokensIn(text)[0];
    const family = token && this.#families[token.family];
    if (!token || !family || family.isRevoked) return { refusal: 'unknown', token };
    if (this.honours(token)) {
      family.previous = this.#mode === 'grace' ? family.current : undefined;
      family.previousUntil = this.#now() + GRACE_MS;
      return { pair: this.#issue(family, token.serial) };
    }
    if (this.#mode === 'revoke') family.isRevoked = true;
    return { refusal: 'reused', token };
  }

  /** Returns the body of the token endpoint's answer with a pair. */
  body({ family, serial }: Pair): object {
    return {
      access_token: `at-${family.id}-${serial}`,
      token_type: 'bearer',
      expires_in: this.#lifetimeS,
      refresh_token: `rt-${family.id}-${serial}`,
    };
  }

  /** Returns the family on whose behalf an access token speaks now. */
  bearer(text: string): Family | undefined {
    const token = tokensIn(text)[0];
    const family = token && this.#families[token.family];
    if (!token || !family || family.isRevoked || token.kind !== 'access') return undefined;
    return (this.#expiries.get(token.serial) ?? 0) > this.#now() ? family : undefined;
  }

  /** Returns how long the API takes an access token from now on, in milliseconds; 0 for one that it refuses. */
  remainingMs(text: string): number {
    const serial = tokensIn(text)[0]?.serial ?? -1;
    return this.bearer(text) ? (this.#expiries.get(serial) ?? 0) - this.#now() : 0;
  }

  #open(user: string, isOfApplication: boolean): Family {
    const id = this.#families.length;
    const family: Family = {
      id,
      user,
      isOfApplication,
      current: 0,
      previous: undefined,
      previousUntil: 0,
      isRevoked: false,
    };
    this.#families.push(family);
    return family;
  }

  #issue(family: Family, shown: number | undefined): Pair {
    this.#serials += 1;
    family.current = this.#serials;
    this.#expiries.set(family.current, this.#now() + this.#lifetimeS * 1000);
    return { family, serial: family.current, shown };
  }
}
