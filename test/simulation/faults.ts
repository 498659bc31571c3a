/** Where a call goes. */
export type Target = 'store' | 'service';

/** At which end of a call something happens to its process: before the request has left, or with the answer before its door. */
export type Way = 'leave' | 'answer';

/**
 * Which clocks stop with a process: none (`stop`: SIGSTOP), the monotonic one (`suspend`: a laptop sleeps), or both
 * (`pause`: a virtual machine is moved, and nobody sets its clock).
 */
export type Clocks = 'stop' | 'suspend' | 'pause';

/**
 * What becomes of messages while a connection is cut: refused at once, lost without a word, or held back until it heals. A store
 * that is read-only refuses writes alone.
 */
export type Cut = 'refuse' | 'lose' | 'hold' | 'read-only';

/** What is wrong with a token response: a page of HTML, JSON that ends in the middle, or a field that is missing. */
export type Damage = 'page' | 'half' | 'access_token' | 'refresh_token' | 'expires_in';

/** Something that goes wrong with one call. */
export type Fault =
  /** No connection: nothing left. */
  | { readonly kind: 'refuse' }
  /** The connection breaks before the effect, after it, or so that the effect comes `ms` after the error. */
  | { readonly kind: 'reset'; readonly effect: 'none' | 'done' | 'late'; readonly ms: number }
  /** Never an answer, with the effect or without. */
  | { readonly kind: 'silence'; readonly effect: 'none' | 'done' }
  | { readonly kind: 'slow'; readonly way: Way; readonly ms: number }
  | { readonly kind: 'freeze'; readonly way: Way; readonly clocks: Clocks; readonly ms: number }
  /** The process dies, and another one takes its place after `ms`. */
  | { readonly kind: 'crash'; readonly way: Way; readonly ms: number }
  | { readonly kind: 'cut'; readonly way: Way; readonly cut: Cut; readonly everyone: boolean; readonly ms: number }
  /** The store forgets what it was told in the last `ms`, this call's effect included. */
  | { readonly kind: 'failover'; readonly ms: number }
  /** The wall clock of the process is set. */
  | { readonly kind: 'jump'; readonly ms: number }
  /** The service answers with an error, before the effect or after it. */
  | { readonly kind: 'status'; readonly status: number; readonly effect: 'none' | 'done' }
  /** The service's answer is damaged, after the effect. */
  | { readonly kind: 'damage'; readonly damage: Damage }
  /** The request is delivered again after `ms`. */
  | { readonly kind: 'twice'; readonly ms: number }
  /** A read is answered as it would have been `ms` ago. */
  | { readonly kind: 'stale'; readonly ms: number }
  /** The store drops the lock or the record of the grant, after the effect. */
  | { readonly kind: 'evict'; readonly what: 'lease' | 'record' };

const SECOND = 1000;

const ANY: readonly Fault[] = [
  { kind: 'refuse' },
  { kind: 'reset', effect: 'none', ms: 0 },
  { kind: 'reset', effect: 'done', ms: 0 },
  { kind: 'silence', effect: 'none' },
  { kind: 'silence', effect: 'done' },
  { kind: 'slow', way: 'leave', ms: 3 * SECOND },
  { kind: 'slow', way: 'answer', ms: 3 * SECOND },
  { kind: 'freeze', way: 'leave', clocks: 'stop', ms: 40 * SECOND },
  { kind: 'freeze', way: 'answer', clocks: 'stop', ms: 40 * SECOND },
  { kind: 'freeze', way: 'answer', clocks: 'suspend', ms: 40 * SECOND },
  { kind: 'crash', way: 'leave', ms: 2 * SECOND },
  { kind: 'crash', way: 'answer', ms: 2 * SECOND },
  { kind: 'cut', way: 'leave', cut: 'refuse', everyone: false, ms: 8 * SECOND },
  { kind: 'cut', way: 'leave', cut: 'refuse', everyone: false, ms: 45 * SECOND },
  { kind: 'cut', way: 'answer', cut: 'refuse', everyone: false, ms: 45 * SECOND },
  { kind: 'cut', way: 'answer', cut: 'lose', everyone: false, ms: 8 * SECOND },
  { kind: 'cut', way: 'leave', cut: 'hold', everyone: false, ms: 20 * SECOND },
  { kind: 'cut', way: 'answer', cut: 'refuse', everyone: true, ms: 8 * SECOND },
  { kind: 'twice', ms: 2 * SECOND },
  { kind: 'jump', ms: 3 * 3600 * SECOND },
  { kind: 'jump', ms: -3 * 3600 * SECOND },
];

const OF_STORE: readonly Fault[] = [
  { kind: 'reset', effect: 'late', ms: 20 * SECOND },
  { kind: 'failover', ms: 50 },
  // It comes back empty.
  { kind: 'failover', ms: 24 * 3600 * SECOND },
  { kind: 'cut', way: 'leave', cut: 'read-only', everyone: true, ms: 8 * SECOND },
  { kind: 'stale', ms: 5 * SECOND },
  { kind: 'evict', what: 'lease' },
  { kind: 'evict', what: 'record' },
];

const OF_SERVICE: readonly Fault[] = [
  { kind: 'slow', way: 'answer', ms: 12 * SECOND },
  { kind: 'slow', way: 'leave', ms: 12 * SECOND },
  { kind: 'reset', effect: 'late', ms: 2 * SECOND },
  { kind: 'status', status: 503, effect: 'none' },
  { kind: 'status', status: 500, effect: 'done' },
  { kind: 'status', status: 429, effect: 'none' },
  { kind: 'damage', damage: 'page' },
  { kind: 'damage', damage: 'half' },
  { kind: 'damage', damage: 'access_token' },
  { kind: 'damage', damage: 'refresh_token' },
  { kind: 'damage', damage: 'expires_in' },
];

/** Every fault that the exhaustive search places at a call to `target`. */
export function faultsOf(target: Target): readonly Fault[] {
  return [...ANY, ...(target === 'store' ? OF_STORE : OF_SERVICE)];
}

const CLOCKS: readonly Clocks[] = ['stop', 'suspend', 'pause'];
const WAYS: readonly Way[] = ['leave', 'answer'];
/** From 0.1 s to 60 s: in steps of half a second around the length of a lease, of a second elsewhere. */
const FREEZES_MS: readonly number[] = [
  ...[100, 200, 500],
  ...Array.from({ length: 60 }, (_, index) => (index + 1) * SECOND),
  ...Array.from({ length: 20 }, (_, index) => (15 + index) * SECOND + SECOND / 2),
];

/** Every freeze of the search over lengths. */
export function freezes(): readonly Fault[] {
  return FREEZES_MS.flatMap((ms) =>
    CLOCKS.flatMap((clocks) => WAYS.map((way): Fault => ({ kind: 'freeze', way, clocks, ms }))),
  );
}

/** Returns a fault as one word, for traces and counts. */
export function describeFault(fault: Fault): string {
  return Object.values(fault).join('-');
}
