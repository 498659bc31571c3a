import type { Happening } from './happening.js';
import type { Entry } from './journal.js';
import type { ServiceLog } from './service-log.js';
import { wordsFor } from './words.js';

/** Makes journal entries of what happened. There is one scribe for all processes, so that the entries can be counted. */
export class Scribe {
  readonly #service: ServiceLog | undefined;
  #count = 0;

  /** @param service What the emulated service saw; a real one does not tell. */
  constructor(service: ServiceLog | undefined) {
    this.#service = service;
  }

  /** The entry, or nothing if what happened belongs to no grant: a declined login, for one. */
  write(happening: Happening): Entry | undefined {
    const requests = this.#service?.claim(happening) ?? [];
    const { kind, event, at, pid } = happening;
    if (event.grantId === undefined) return undefined;
    this.#count += 1;
    const renewed = kind === 'refresh' && (event.outcome === 'refreshed' || event.outcome === 'unsaved');
    return { id: this.#count, at, grantId: event.grantId, kind, ...wordsFor(happening), renewed, pid, requests };
  }
}
