import { createHash, randomInt, randomUUID } from 'node:crypto';
import { SHARE_PREFIX, type StoredGrant, type TokenStore } from '../stores/token-store.js';
import { withTimeout } from '../waiting.js';

/** The slots of an account that one process holds. */
export interface Holding {
  /** New with each renewal. If it stays the same for a while, the process is dead. */
  readonly heartbeat: number;
  readonly slots: number;
  /** Calls of the process that ran or waited. */
  readonly wanted: number;
  /** Higher than all others at the start and at each renewal with a slot, so that the lowest has waited longest. */
  readonly turn: number;
}

/** The holdings of an account, by process. */
export type Holdings = Readonly<Record<string, Holding>>;

/** Where slots are shared. */
export interface SlotSharing {
  /** Of the strategy and its service, escaped: part of the ids in the token store. */
  readonly namespace: string;
  /** Returns the store to share over, once it is known. */
  readonly store: () => TokenStore | undefined;
}

/** How long a holding counts without a renewal, in milliseconds. */
const LEASE_MS = 3_000;

/** Time limit of one operation of the store, in milliseconds. */
const OPERATION_LIMIT_MS = 1_000;

/** Tries to replace a record that other processes change too, and the longest pause between two. */
const MAX_REPLACE_TRIES = 20;
const MAX_RETRY_PAUSE_MS = 20;

/**
 * Shares the slots of accounts between the processes of a token store: one record for each account in use, which every process
 * renews while it uses its share. So a busy process needs no round trip for each request.
 *
 * The clocks of processes differ: each detects by its own clock that another has stopped renewing.
 */
export class SharedPermits {
  readonly #max: number;
  readonly #sharing: SlotSharing;
  readonly #owner = randomUUID();
  /** By account and process: the last renewal that was seen, and when on the monotonic clock. */
  readonly #seen = new Map<string, Map<string, { readonly heartbeat: number; readonly at: number }>>();

  /** @param max Slots of each account */
  constructor(max: number, sharing: SlotSharing) {
    this.#max = max;
    this.#sharing = sharing;
  }

  /** True if there is a store to share over. */
  get isAvailable(): boolean {
    return this.#sharing.store()?.lock !== undefined;
  }

  /**
   * Renews the share of this process, or takes one.
   *
   * @param wanted Calls that run or wait
   * @param running Calls that run, or may begin before the answer: their slots cannot be given back yet
   * @returns how many calls it may run, and false while it or others still hold slots that are due to others
   * @throws if the store fails
   */
  async renew(
    account: string,
    wanted: number,
    running: number,
  ): Promise<{ readonly slots: number; readonly isSettled: boolean }> {
    let share = { slots: 0, isSettled: false };
    await this.#change(account, (holdings) => {
      const others = this.#alive(account, holdings);
      const mine = holdings[this.#owner];
      const last = Math.max(0, ...Object.values(others).map(({ turn }) => turn));
      const turn = mine === undefined || mine.slots > 0 ? last + 1 : mine.turn;
      const due =
        fairShares({ ...others, [this.#owner]: { heartbeat: 0, slots: 0, wanted, turn } }, this.#max)[this.#owner] ?? 0;
      const taken = Object.values(others).reduce((sum, { slots }) => sum + slots, 0);
      const free = Math.max(0, this.#max - taken);
      // Half of what it does not want is left to the next process, which would have to wait for a renewal otherwise.
      const target = Math.min(due, wanted + Math.floor(Math.max(0, free - wanted) / 2));
      const held = Math.max(Math.min(target, free), Math.min(running, mine?.slots ?? 0));
      // With more processes than slots, one without any asks again soon: another's next renewal may free one.
      share = { slots: Math.min(target, held), isSettled: target > 0 && held >= target && held <= due };
      return { ...others, [this.#owner]: { heartbeat: (mine?.heartbeat ?? 0) + 1, slots: held, wanted, turn } };
    });
    return share;
  }

  /** Gives the share of this process back. @throws if the store fails */
  async giveBack(account: string): Promise<void> {
    await this.#change(account, (holdings) => {
      const { [this.#owner]: mine, ...others } = holdings;
      return mine === undefined ? undefined : this.#alive(account, others);
    });
    this.#seen.delete(account);
  }

  /** Returns the holdings that other processes have renewed recently. */
  #alive(account: string, holdings: Holdings): Holdings {
    const before = this.#seen.get(account);
    const now = performance.now();
    const seen = new Map<string, { heartbeat: number; at: number }>();
    const alive = Object.entries(holdings).filter(([owner, { heartbeat }]) => {
      if (owner === this.#owner) return false;
      const known = before?.get(owner);
      const at = known?.heartbeat === heartbeat ? known.at : now;
      if (now - at > LEASE_MS) return false;
      seen.set(owner, { heartbeat, at });
      return true;
    });
    this.#seen.set(account, seen);
    return Object.fromEntries(alive);
  }

  /** Replaces the holdings of an account, however many processes do so at once. @param edit Returns `undefined` for no change */
  async #change(account: string, edit: (holdings: Holdings) => Holdings | undefined): Promise<void> {
    const store = this.#sharing.store();
    if (store === undefined) return;
    const id = `${SHARE_PREFIX}${this.#sharing.namespace}+${createHash('sha256').update(account).digest('base64url')}`;
    const replace = async () => {
      const before = await store.get(id);
      const after = edit(holdingsOf(before));
      return after === undefined || (await replaceRecord(store, id, before, after));
    };
    for (let tries = 0; tries < MAX_REPLACE_TRIES; tries++) {
      if (await withTimeout(replace(), OPERATION_LIMIT_MS, () => new Error('The token store did not answer in time')))
        return;
      await new Promise((resolve) => setTimeout(resolve, randomInt(1, MAX_RETRY_PAUSE_MS)));
    }
    throw new Error('Other processes kept changing the record');
  }
}

/** Replaces a record unless another process has changed it. Returns whether it did. */
async function replaceRecord(
  store: TokenStore,
  id: string,
  before: StoredGrant | undefined,
  holdings: Holdings,
): Promise<boolean> {
  const after = { version: randomInt(1, 2 ** 47), expiresAt: 0, sealed: JSON.stringify(holdings) };
  if (before !== undefined && store.update) {
    if (Object.keys(holdings).length > 0) return await store.update(id, after, before.version);
    await store.delete(id, before.version);
    // If another process was faster, the record stays, and this holding in it.
    return (await store.get(id)) === undefined;
  }
  if (before === undefined && store.add) return await store.add(id, after);
  // Others compare under the lock too.
  const replaced = await store.lock?.(id, async () => {
    const isSame = (await store.get(id))?.version === before?.version;
    if (isSame) await store.set(id, after);
    return isSame;
  });
  return replaced ?? true;
}

/** Returns the holdings in a record. Anything else counts as empty, and is replaced. */
function holdingsOf(record: StoredGrant | undefined): Holdings {
  try {
    const value: unknown = JSON.parse(record?.sealed ?? '{}');
    const entries = Object.entries(typeof value === 'object' && value !== null ? value : {});
    return Object.fromEntries(entries.filter((entry): entry is [string, Holding] => isHolding(entry[1])));
  } catch {
    return {};
  }
}

function isHolding(value: unknown): value is Holding {
  if (typeof value !== 'object' || value === null) return false;
  return ['heartbeat', 'slots', 'wanted', 'turn'].every((name) => Number.isSafeInteger(Reflect.get(value, name)));
}

/**
 * Returns how many slots each process is due: what it wants, as far as all can have it, and an equal part of the rest. With more
 * processes than slots, those that have waited longest get one each. Each process computes the same.
 */
export function fairShares(holdings: Holdings, max: number): Readonly<Record<string, number>> {
  const all = Object.entries(holdings);
  const rank = ({ wanted, turn }: Holding) => (all.length > max ? turn : wanted);
  const byNeed = all.sort(([owner, one], [other, two]) => rank(one) - rank(two) || (owner < other ? -1 : 1));
  let left = max;
  const shares = byNeed.map(([owner, { wanted }], index) => {
    const share = Math.min(wanted, Math.ceil(left / (byNeed.length - index)));
    left -= share;
    return [owner, share] as const;
  });
  return Object.fromEntries(
    shares.map(([owner, share], index) => {
      const extra = Math.ceil(left / (shares.length - index));
      left -= extra;
      return [owner, share + extra];
    }),
  );
}
