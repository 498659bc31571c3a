import crypto from 'node:crypto';
import { syncBuiltinESMExports } from 'node:module';
import session from 'express-session';

/** Kinds of cryptography: the functions of `node:crypto` that begin it, and the files of Node that do it. */
export const CRYPTO = [
  { name: 'hashes and MACs', functions: ['createHash', 'createHmac', 'hash'], files: /^node:internal\/crypto\/hash$/ },
  {
    name: 'encryption and decryption',
    functions: ['createCipheriv', 'createDecipheriv'],
    files: /^node:internal\/crypto\/cipher$/,
  },
  {
    name: 'random bytes',
    functions: ['randomBytes', 'randomFillSync', 'randomInt', 'randomUUID'],
    files: /^node:internal\/crypto\/random$/,
  },
  {
    name: 'derived keys and key objects',
    functions: ['hkdfSync', 'createSecretKey'],
    files: /^node:internal\/crypto\/(?:hkdf|keys)$/,
  },
];

/** What express-session asks its store for. */
export const SESSIONS = [
  { name: 'sessions read', methods: ['get'] },
  { name: 'sessions written', methods: ['set', 'touch'] },
  { name: 'sessions destroyed', methods: ['destroy'] },
];

/**
 * Counts calls from now on, by kind.
 *
 * @returns {() => Record<string, number>} takes the counts, and begins anew
 */
export function countCalls() {
  let counts = {};
  const counted = (object, method, name) => {
    const original = object[method];
    if (original === undefined) return;
    object[method] = function count(...args) {
      counts[name] = (counts[name] ?? 0) + 1;
      return original.apply(this, args);
    };
  };
  for (const { name, functions } of CRYPTO) for (const one of functions) counted(crypto, one, name);
  for (const { name, methods } of SESSIONS)
    for (const one of methods) counted(session.MemoryStore.prototype, one, name);
  syncBuiltinESMExports();
  return () => {
    const taken = counts;
    counts = {};
    return taken;
  };
}
