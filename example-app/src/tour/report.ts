import { shortened } from '../panel/shortened.js';
import type { Answer } from './visitor.js';

/** Thrown if a step of the tour did not do what it should. */
export class TourError extends Error {
  override readonly name = 'TourError';
}

/** Prints what is done, and compares it with what should come out. */
export class Report {
  readonly #print: (line: string) => void;
  #steps = 0;

  constructor(print: (line: string) => void) {
    this.#print = print;
  }

  get steps(): number {
    return this.#steps;
  }

  /** Begins a step. */
  step(title: string): void {
    this.#steps += 1;
    this.#print(`\n${String(this.#steps).padStart(2)}. ${title}`);
  }

  /** Prints a request and its outcome, with what is secret in the addresses shortened. */
  answer({ method, url, status, location }: Answer): void {
    this.#print(`    ${method} ${shownUrl(url)} -> ${status}${location ? ` to ${shownUrl(location)}` : ''}`);
  }

  /** Prints something that was seen. */
  note(text: string): void {
    this.#print(`    ${text}`);
  }

  /** @throws {TourError} unless it holds */
  check(what: string, holds: boolean): void {
    if (!holds) throw new TourError(`Not as it should be: ${what}`);
    this.#print(`    ok: ${what}`);
  }
}

const secret = new Set(['code', 'state']);

/** Returns an address with its secrets shortened. */
function shownUrl(url: URL): string {
  const pairs = url.search.slice(1).split('&').filter(Boolean);
  const shown = pairs.map((pair) => {
    const [name = '', value = ''] = pair.split('=');
    return secret.has(name) ? `${name}=${shortened(value)}` : pair;
  });
  return `${url.origin}${url.pathname}${shown.length > 0 ? `?${shown.join('&')}` : ''}`;
}
