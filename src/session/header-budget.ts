import type { ServerResponse } from 'node:http';
import type { Visit } from './visit.js';

/** Most characters of a browser's `Cookie` header: many proxies refuse a header above 8 KB, and a session cookie has to fit in. */
const MAX_COOKIE_HEADER = 7_800;

/**
 * Most characters that this package adds to the headers of one response. nginx answers 502 if all headers are longer than its
 * buffer, 4 KB by default; the application adds its own. Browsers keep cookies of up to 4,096 bytes.
 */
const MAX_RESPONSE_HEADERS = 2_800;

/** Characters of a line of `Set-Cookie` around name and value: its attributes, and the header's name. */
const SET_COOKIE_LENGTH = 90;

/** Characters around name and value of a cookie in the `Cookie` header. */
const PAIR_LENGTH = '=; '.length;

/** What a response has room for: in its own headers, and in the `Cookie` header that its cookies lead to. */
export class HeaderBudget {
  /** Characters that the response's headers may still take. */
  #response: number;
  /** Characters that the browser's `Cookie` header may still take. */
  #cookies: number;

  /** @param location Characters of the address that the response redirects to. */
  constructor(visit: Visit, res: ServerResponse, location = 0) {
    this.#response = MAX_RESPONSE_HEADERS - location;
    this.#cookies = MAX_COOKIE_HEADER - visit.cookieHeader.length;
    for (const line of setCookieLines(res)) {
      const [, name = '', value = ''] = /^([^=]*)=([^;]*)/.exec(line) ?? [];
      this.#response -= line.length;
      this.#cookies += pairLength(name, visit.cookies[name]);
      if (!/; Max-Age=0\b/i.test(line)) this.#cookies -= pairLength(name, value);
    }
  }

  /** Returns true if the response can redirect to an address of this length, and still set a short cookie. */
  hasRoomForLocation(length: number): boolean {
    return length <= this.#response - 300;
  }

  /** Returns true if a cookie fits into both. @param reserved Characters of the `Cookie` header to leave to other cookies. */
  hasRoomFor(name: string, length: number, reserved = 0): boolean {
    return (
      name.length + length + PAIR_LENGTH <= this.#response - SET_COOKIE_LENGTH &&
      name.length + length + PAIR_LENGTH <= this.#cookies - reserved
    );
  }

  /** Counts a cookie that the response sets. */
  add(name: string, length: number): void {
    this.#response -= name.length + length + SET_COOKIE_LENGTH;
    this.#cookies -= name.length + length + PAIR_LENGTH;
  }

  /** Counts a cookie that the response ends. Returns false if it has no room for that. */
  end(name: string, value: string): boolean {
    if (name.length + SET_COOKIE_LENGTH > this.#response) return false;
    this.#response -= name.length + SET_COOKIE_LENGTH;
    this.#cookies += pairLength(name, value);
    return true;
  }

  /** True if the cookies that were counted are more than a proxy accepts. */
  get isExceeded(): boolean {
    return this.#cookies < 0;
  }
}

function pairLength(name: string, value: string | undefined): number {
  return value === undefined ? 0 : name.length + value.length + PAIR_LENGTH;
}

/** Returns the lines of `Set-Cookie` that a response has so far; none for a double in a unit test, which may lack the method. */
function setCookieLines(res: Partial<ServerResponse>): readonly string[] {
  return [res.getHeader?.('Set-Cookie') ?? []].flat().map(String);
}
