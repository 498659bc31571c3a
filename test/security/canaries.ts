import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import type { Page } from '../support/browser.js';
import { stored } from '../support/session-entries.js';
import type { World } from '../support/world.js';
import { shownOf } from './shown.js';

const CHANNELS = ['login', 'refresh', 'grant-lost', 'api'].map((name) => `passport-oauth-app:${name}`);
const CONSOLE = ['debug', 'error', 'info', 'log', 'trace', 'warn'] as const;
const STREAMS = ['stdout', 'stderr'] as const;

/** Shorter parts of a token may stand in any text by chance. */
const SHORTEST_SECRET = 12;

interface Output {
  readonly where: string;
  readonly text: string;
}

/**
 * The secrets of a run, and all that the run shows: console, standard output, warnings of the process, events, and
 * what a test notes of answers, errors and stores. From its creation until `stop()`.
 */
export class Canaries {
  readonly #secrets = new Map<string, string>();
  readonly #outputs: Output[] = [];
  readonly #stops: (() => void)[] = [];

  constructor() {
    for (const channel of CHANNELS) {
      const listener = (event: unknown) => this.note(channel, event);
      subscribe(channel, listener);
      this.#stops.push(() => void unsubscribe(channel, listener));
    }
    const onWarning = (warning: Error) => this.note('warning', warning);
    process.on('warning', onWarning);
    this.#stops.push(() => void process.off('warning', onWarning));
    for (const method of CONSOLE) this.#listenIn(console, method, 'console');
    for (const stream of STREAMS) this.#listenIn(process[stream], 'write', stream);
  }

  /** Number of different secrets that are looked for. */
  get secrets(): number {
    return this.#secrets.size;
  }

  /** Number of outputs that were looked through. */
  get outputs(): number {
    return this.#outputs.length;
  }

  /** Looks for a secret from now on, and for each part of it if it is a token of several parts. */
  hide(what: string, secret: unknown): void {
    if (typeof secret !== 'string') return;
    for (const part of [secret, ...secret.split('.')]) {
      if (part.length >= SHORTEST_SECRET) this.#secrets.set(part, what);
    }
  }

  /** Takes down what was shown somewhere. */
  note(where: string, value: unknown): void {
    this.#outputs.push({ where, text: typeof value === 'string' ? value : shownOf(value) });
  }

  /** Takes down an answer that a browser got: everything but the cookies of the browser itself. */
  notePage({ status, headers, text }: Page): void {
    this.note('answer', `${status}\n${[...headers].join('\n')}\n${text}`);
  }

  /** Takes down what an application holds: its errors, its session store, and the objects that its code may log. */
  noteWorld(world: World): void {
    for (const error of world.errors) this.note('error', error);
    this.note('session store', stored(world));
    this.note('strategy', world.strategy);
    for (const [, entry] of stored(world)) {
      const grantId = entry[world.strategy.name];
      if (typeof grantId === 'string') this.note('client', world.strategy.client(grantId));
    }
  }

  /** What was shown and must not be, without showing it here. Empty if all is well. */
  findings(): string[] {
    return this.#outputs.flatMap(({ where, text }) =>
      [...this.#secrets].filter(([secret]) => text.includes(secret)).map(([, what]) => `${where} shows ${what}`),
    );
  }

  stop(): void {
    for (const stop of this.#stops.splice(0)) stop();
  }

  #listenIn(target: object, method: string, where: string): void {
    const original: unknown = Reflect.get(target, method);
    if (typeof original !== 'function') return;
    Reflect.set(target, method, (...args: unknown[]) => {
      for (const arg of args) if (typeof arg !== 'function') this.note(where, arg);
      return original.apply(target, args);
    });
    this.#stops.push(() => void Reflect.set(target, method, original));
  }
}
