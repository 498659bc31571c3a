import realCrypto from 'node:crypto';
import { createRequire } from 'node:module';
import { compileFunction } from 'node:vm';
import type { Machine } from './machine.js';

/** The package, as an application imports it: the main entry point and those of its stores. */
export type Package = typeof import('./package.js');

const PARAMETERS = [
  ...['module', 'exports', 'require', 'setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'setImmediate'],
  ...['clearImmediate', 'performance', 'Date', 'Math', 'crypto'],
];

type Start = (...parameters: unknown[]) => void;

/** Whose clocks, timers and randomness an instance of the package has at present. */
interface Host {
  machine: Machine;
}

/** An instance of the package, lent to one process after the other. */
interface Instance {
  readonly host: Host;
  readonly exports: Package;
  loans: number;
}

/** Loads the package for a process. @param place The number of the process in its trial */
export type Load = (machine: Machine, place: number) => Package;

/** After so many processes an instance is loaded anew: the package remembers each strategy that was never closed. */
const MAX_LOANS = 500;

/**
 * Returns a function that loads the package for a process: with clocks, timers and randomness of its own.
 *
 * No two processes of a trial share an instance. The next trial has the instances of the one before, because code that has run
 * for a while runs several times as fast; the package keeps what it knows in its strategies.
 */
export function packageLoader(code: string, file: string): Load {
  const start = compileFunction(code, PARAMETERS, { filename: file }) as Start;
  const instances: (Instance | undefined)[] = [];
  return (machine, place) => {
    let instance = instances[place];
    if (instance === undefined || instance.loans >= MAX_LOANS) {
      const host = { machine };
      instance = { host, exports: instantiate(start, host), loans: 0 };
      instances[place] = instance;
    }
    instance.loans += 1;
    instance.host.machine = machine;
    return instance.exports;
  };
}

const realRequire = createRequire(`${process.cwd()}/package.json`);

function instantiate(start: Start, host: Host): Package {
  const module = { exports: {} };
  const time = timersOf(host);
  const crypto = cryptoOf(host);
  const known = new Map<string, unknown>([
    ['node:crypto', crypto],
    ['node:timers', time],
    ['node:timers/promises', { setTimeout: (...given: Pause) => pause(host, ...given) }],
    ['node:perf_hooks', { performance: time.performance }],
    ['jose/jwe/compact/encrypt', { CompactEncrypt: SyncEncrypt }],
    ['jose/jwe/compact/decrypt', { compactDecrypt: syncDecrypt }],
  ]);
  // Node looks at the file system whenever it is asked for a module.
  const require = (id: string): unknown => {
    const found = known.get(id) ?? realRequire(id);
    known.set(id, found);
    return found;
  };
  start(
    module,
    module.exports,
    require,
    time.setTimeout,
    time.clearTimeout,
    time.setInterval,
    time.clearTimeout,
    time.setImmediate,
    time.clearTimeout,
    time.performance,
    dateOf(host),
    Object.create(Math, { random: { value: () => host.machine.random.next() } }),
    crypto,
  );
  return module.exports as Package;
}

type Pause = [ms: number, value?: unknown, options?: { readonly signal?: AbortSignal }];

function pause(host: Host, ...[ms, value, options]: Pause): Promise<unknown> {
  const { machine } = host;
  const signal = options?.signal;
  return new Promise((resolve, reject) => {
    const abort = () => {
      machine.clearTimer(timer);
      reject(signal?.reason);
    };
    const timer = machine.setTimer(() => {
      signal?.removeEventListener('abort', abort);
      resolve(value);
    }, ms);
    if (signal?.aborted) abort();
    else signal?.addEventListener('abort', abort);
  });
}

function timersOf(host: Host) {
  type Callback = (...parameters: unknown[]) => void;
  return {
    setTimeout: (run: Callback, ms: number, ...parameters: unknown[]) =>
      host.machine.setTimer(() => run(...parameters), ms),
    clearTimeout: (timer: unknown) => host.machine.clearTimer(timer),
    setInterval: () => {
      throw new Error('The simulation has no intervals: the package has used none so far');
    },
    setImmediate: (run: Callback, ...parameters: unknown[]) => host.machine.setTimer(() => run(...parameters), 0),
    performance: { now: () => host.machine.monotonic() },
  };
}

function dateOf(host: Host): DateConstructor {
  return class extends Date {
    constructor(value: string | number | Date = host.machine.wall()) {
      super(value);
    }

    static override now(): number {
      return host.machine.wall();
    }
  } as DateConstructor;
}

/**
 * A compact JWE (`dir`, `A256GCM`) as jose makes it, in no time: the promises of Web Crypto settle in real time, which the
 * simulation does not know.
 */
class SyncEncrypt {
  readonly #plaintext: Uint8Array;
  #header = '';

  constructor(plaintext: Uint8Array) {
    this.#plaintext = plaintext;
  }

  setProtectedHeader(header: object): this {
    this.#header = Buffer.from(JSON.stringify(header)).toString('base64url');
    return this;
  }

  async encrypt(key: Uint8Array): Promise<string> {
    // The same text gets the same nonce, so that a run can be repeated. Nobody reads it here.
    const nonce = realCrypto.createHash('sha256').update(this.#plaintext).digest().subarray(0, 12);
    const cipher = realCrypto.createCipheriv('aes-256-gcm', key, nonce).setAAD(Buffer.from(this.#header));
    const text = Buffer.concat([cipher.update(this.#plaintext), cipher.final()]);
    const sealed = [
      this.#header,
      '',
      ...[nonce, text, cipher.getAuthTag()].map((part) => part.toString('base64url')),
    ].join('.');
    sealedTexts.set(sealed, Buffer.from(this.#plaintext).toString());
    return sealed;
  }
}

async function syncDecrypt(sealed: string, key: Uint8Array): Promise<{ readonly plaintext: Uint8Array }> {
  const [header = '', , ...rest] = sealed.split('.');
  const [nonce, text, tag] = rest.map((part) => Buffer.from(part, 'base64url'));
  if (!nonce || !text || !tag) throw new Error('decryption failed');
  const decipher = realCrypto.createDecipheriv('aes-256-gcm', key, nonce).setAAD(Buffer.from(header)).setAuthTag(tag);
  return { plaintext: Buffer.concat([decipher.update(text), decipher.final()]) };
}

/** What was encrypted, for the observer: it has no keys. */
const sealedTexts = new Map<string, string>();

/** Returns the text of a sealed record. */
export function textOf(sealed: string): string {
  return sealedTexts.get(sealed) ?? Buffer.from(sealed, 'base64url').toString('latin1');
}

/** Forgets what was encrypted. */
export function forgetSealed(): void {
  sealedTexts.clear();
}

const derived = new Map<string, ArrayBuffer>();

/** Derives a key once: all processes of an application have the same secrets. */
function hkdfSync(...parameters: Parameters<typeof realCrypto.hkdfSync>): ArrayBuffer {
  const name = parameters.map(String).join('\n');
  const key = derived.get(name) ?? realCrypto.hkdfSync(...parameters);
  derived.set(name, key);
  return key;
}

function cryptoOf(host: Host): typeof realCrypto {
  const randomBytes = (size: number): Buffer => host.machine.random.bytes(size);
  const randomUUID = (): string => {
    const hex = randomBytes(16).toString('hex');
    return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-8${hex.slice(17, 20)}-${hex.slice(20)}`;
  };
  const randomInt = (low: number, high?: number): number => {
    const [from, to] = high === undefined ? [0, low] : [low, high];
    const fraction = ((host.machine.random.bits() >>> 5) * 2 ** 26 + (host.machine.random.bits() >>> 6)) / 2 ** 53;
    return from + Math.floor(fraction * (to - from));
  };
  const getRandomValues = <T extends Uint8Array>(array: T): T => {
    array.set(randomBytes(array.length));
    return array;
  };
  const own = { hkdfSync, randomBytes, randomUUID, randomInt, getRandomValues, randomFillSync: getRandomValues };
  return Object.create(realCrypto, Object.getOwnPropertyDescriptors(own));
}
