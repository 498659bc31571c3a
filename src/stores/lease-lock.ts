import { randomUUID } from 'node:crypto';
import { TokenStoreError } from '../errors.js';
import { secondsOption } from './store-options.js';
import { withTimeout } from './time-limit.js';

/** A lease that a shared store gives to one owner at a time, and that ends by itself. */
export interface Lease {
  /** Takes the lease if nobody has it or it has ended; resolves to false if somebody has it. Atomic. */
  take(id: string, owner: string): Promise<boolean>;
  /** Gives the lease back if `owner` still has it. */
  release(id: string, owner: string): Promise<void>;
}

/** The lock that stands on a lease, as the token stores offer it. */
export type Lock = <T>(id: string, work: () => Promise<T>) => Promise<T>;

/** Seconds that a lease runs by default. A refresh seldom takes more than 20: one HTTP request of 10 s and one more try. */
const DEFAULT_LEASE_SECONDS = 30;

/** Longest lease, in seconds: for so long can a holder that died keep a user waiting. */
const MAX_LEASE_SECONDS = 600;

/** How long after a lease of somebody else must have ended we go on trying, in milliseconds. */
const MARGIN_MS = 5000;

/** Bounds of the pause between two tries for a lease, in milliseconds. */
const PAUSE_MS = { first: 20, most: 200, growth: 1.5 } as const;

/** How long the result of work waits for its lease to be given back. */
const RELEASE_MS = 1000;

/** Those of this process that wait for one id. */
interface Line {
  /** Resolves when the last in line has stopped trying. */
  tail: Promise<void>;
  length: number;
  /** Ends the pause of the one that tries. */
  wake: () => void;
}

/**
 * The time of a lease in seconds: `value`, or 30 if that is `undefined`.
 *
 * @throws {ConfigurationError} naming `lease` if it is no number from 1 to 600
 */
export function leaseOption(owner: string, value: unknown): number {
  return secondsOption({ owner, option: 'lease', value, otherwise: DEFAULT_LEASE_SECONDS, max: MAX_LEASE_SECONDS });
}

/**
 * A lock that stands on `lease`. Each call tries for `leaseMs` and 5 s more, then rejects without running its work;
 * it rejects at once if the lease's store fails.
 *
 * The lease is not renewed while work runs: a holder that takes longer, or is frozen, loses the lock, and it is the
 * versioned `update` that then refuses its late write. Waiters try again after 20 to 200 ms, in each process one of
 * them at a time, and at once when the holder is of their own process.
 */
export function leaseLock(lease: Lease, leaseMs: number): Lock {
  const lines = new Map<string, Line>();
  return async function lock(id, work) {
    const owner = randomUUID();
    await inTurn(lines, id, leaseMs + MARGIN_MS, (line, deadline) =>
      takeLease({ lease, leaseMs, id, owner }, line, deadline),
    );
    try {
      return await work();
    } finally {
      await giveBack(lease, id, owner);
      lines.get(id)?.wake();
    }
  };
}

/** Runs `attempt` once all callers of this process that came earlier for `id` have ended theirs. */
async function inTurn(
  lines: Map<string, Line>,
  id: string,
  patienceMs: number,
  attempt: (line: Line, deadline: number) => Promise<void>,
): Promise<void> {
  const deadline = performance.now() + patienceMs;
  const line = lines.get(id) ?? { tail: Promise.resolve(), length: 0, wake: () => undefined };
  lines.set(id, line);
  const turn = line.tail;
  let leave = (): void => undefined;
  const left = new Promise<void>((resolve) => {
    leave = resolve;
  });
  // Who gives up while still in line must not let the next one pass those before.
  line.tail = turn.then(() => left);
  line.length += 1;
  try {
    await withTimeout(turn, patienceMs, () => lateFor('others of this process wait for it too'));
    await attempt(line, deadline);
  } finally {
    leave();
    line.length -= 1;
    if (line.length === 0) lines.delete(id);
  }
}

interface Attempt {
  readonly lease: Lease;
  readonly leaseMs: number;
  readonly id: string;
  readonly owner: string;
}

/** Tries until the lease is had; rejects at the deadline. */
async function takeLease(attempt: Attempt, line: Line, deadline: number): Promise<void> {
  let pauseMs: number = PAUSE_MS.first;
  while (!(await takeOnce(attempt))) {
    const leftMs = deadline - performance.now();
    if (leftMs <= 0) throw lateFor('somebody else keeps it');
    // Jitter, so that waiters of many processes do not all come at once.
    await pause(line, Math.min(leftMs, pauseMs * (1 + Math.random())));
    pauseMs = Math.min(pauseMs * PAUSE_MS.growth, PAUSE_MS.most / 2);
  }
}

async function takeOnce({ lease, leaseMs, id, owner }: Attempt): Promise<boolean> {
  const asked = performance.now();
  try {
    if (!(await lease.take(id, owner))) return false;
  } catch (error) {
    // The lease may have been given all the same, and only the answer been lost.
    void giveBack(lease, id, owner);
    throw error;
  }
  if (performance.now() - asked < leaseMs) return true;
  // The process was frozen until now: the lease may be over, and somebody else's already.
  await giveBack(lease, id, owner);
  return false;
}

/** Never rejects: a lease that is not given back ends by itself, and the work's result must not suffer. */
async function giveBack(lease: Lease, id: string, owner: string): Promise<void> {
  await withTimeout(lease.release(id, owner), RELEASE_MS, () => lateFor('it is not given back')).catch(() => undefined);
}

function pause(line: Line, ms: number): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    line.wake = () => {
      clearTimeout(timer);
      resolve();
    };
  });
}

function lateFor(reason: string): TokenStoreError {
  return new TokenStoreError(`The lock of a grant could not be had in time: ${reason}.`, {
    code: 'ERR_TOKEN_STORE_LOCKED',
  });
}
