import realCrypto from 'node:crypto';
import { createRequire } from 'node:module';
import { compileFunction } from 'node:vm';
import type { Machine } from './machine.js';

/** The package, as an application imports it. */
export type Package = typeof import('../../src/index.js');

const PARAMETERS = [
  'module',
  'exports',
  'require',
  'setTimeout',
  'clearTimeout',
  'setInterval',
  'clearInterval',
  'setImmediate',
  'clearImmediate',
  'performance',
  'Date',
  'Math',
  'crypto',
];

type Start = (...parameters: unknown[]) => void;

/** Returns a function that loads the package anew for a process: with clocks, timers and randomness of its own. */
export function packageLoader(code: string, file: string): (machine: Machine) => Package {
  const start = compileFunction(code, PARAMETERS, { filename: file }) as Start;
  const realRequire = createRequire(`${process.cwd()}/package.json`);
  return (machine) => {
    const module = { exports: {} };
    const time = timersOf(machine);
    const crypto = cryptoOf(machine);
    const modules: Readonly<Record<string, unknown>> = {
      'node:crypto': crypto,
      'node:timers': time,
      'node:timers/promises': { setTimeout: (ms: number, value?: unknown) => pause(machine, ms, value) },
      'node:perf_hooks': { performance: time.performance },
    };
    const require = (id: string): unknown => modules[id] ?? realRequire(id);
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
      dateOf(machine),
      Object.create(Math, { random: { value: () => machine.random.next() } }),
      crypto,
    );
    return module.exports as Package;
  };
}

function pause(machine: Machine, ms: number, value: unknown): Promise<unknown> {
  return new Promise((resolve) => machine.setTimer(() => resolve(value), ms));
}

function timersOf(machine: Machine) {
  type Callback = (...parameters: unknown[]) => void;
  return {
    setTimeout: (run: Callback, ms: number, ...parameters: unknown[]) => machine.setTimer(() => run(...parameters), ms),
    clearTimeout: (timer: unknown) => machine.clearTimer(timer),
    setInterval: () => {
      throw new Error('The simulation has no intervals: the package has used none so far');
    },
    setImmediate: (run: Callback, ...parameters: unknown[]) => machine.setTimer(() => run(...parameters), 0),
    performance: { now: () => machine.monotonic() },
  };
}

function dateOf(machine: Machine): DateConstructor {
  return class extends Date {
    constructor(value: string | number | Date = machine.wall()) {
      super(value);
    }

    static override now(): number {
      return machine.wall();
    }
  } as DateConstructor;
}

const derived = new Map<string, ArrayBuffer>();

/** Derives a key once: all processes of an application have the same secrets. */
function hkdfSync(...parameters: Parameters<typeof realCrypto.hkdfSync>): ArrayBuffer {
  const name = parameters.map(String).join('\n');
  const key = derived.get(name) ?? realCrypto.hkdfSync(...parameters);
  derived.set(name, key);
  return key;
}

function cryptoOf(machine: Machine): typeof realCrypto {
  const randomBytes = (size: number): Buffer => machine.random.bytes(size);
  const randomUUID = (): string => {
    const hex = randomBytes(16).toString('hex');
    return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-8${hex.slice(17, 20)}-${hex.slice(20)}`;
  };
  const randomInt = (low: number, high?: number): number => {
    const [from, to] = high === undefined ? [0, low] : [low, high];
    const fraction = ((machine.random.bits() >>> 5) * 2 ** 26 + (machine.random.bits() >>> 6)) / 2 ** 53;
    return from + Math.floor(fraction * (to - from));
  };
  const getRandomValues = <T extends Uint8Array>(array: T): T => {
    array.set(randomBytes(array.length));
    return array;
  };
  const own = { hkdfSync, randomBytes, randomUUID, randomInt, getRandomValues, randomFillSync: getRandomValues };
  return Object.create(realCrypto, Object.getOwnPropertyDescriptors(own));
}
