/** `setTimeout` fires at once beyond 2^31 - 1 ms, so longer waits are split. */
const MAX_WAIT_MS = 2 ** 30;

/** Minimum time between two scans, in milliseconds. */
const RESOLUTION_MS = 20;

/** A scan this late, in milliseconds, follows a suspension or a busy event loop: responses may be unread. */
const LATE_MS = 100;

/** Maximum number of postponed scans in a row: a request expires eventually, however busy the event loop is. */
const MAX_POSTPONEMENTS = 5;

/** Something that ends at a deadline. */
export interface Expiring {
  /** The deadline, by `performance.now()`; `Infinity` for none. Set by {@link Deadlines}. */
  expiresAt: number;
  /** Its neighbours in the list. Set by {@link Deadlines}. */
  earlier?: Expiring | undefined;
  later?: Expiring | undefined;
  /** @param now By `performance.now()`; `Infinity` to end it in any case. */
  expire(now: number): void;
}

/**
 * One timer for all requests in flight, which scans their list at the earliest deadline: most requests finish long before.
 *
 * The list is linked through its entries. A `Set` gets a new table again and again as requests come and go, and each table
 * refers to the next: once one is old, all later ones survive with their requests until a full garbage collection.
 */
export class Deadlines {
  #first: Expiring | undefined;
  #last: Expiring | undefined;
  #size = 0;
  #timer: NodeJS.Timeout | undefined;
  #nextScan = Infinity;
  #postponements = 0;

  /** Number of entries that have not expired. */
  get size(): number {
    return this.#size;
  }

  /** Calls `entry.expire()` in `timeoutMs`, 20 to 40 ms late, unless the entry is removed or set anew by then. */
  set(entry: Expiring, timeoutMs: number): void {
    if (entry !== this.#first && entry.earlier === undefined) {
      if (this.#size === 0) this.#timer?.ref();
      this.#size++;
      entry.earlier = this.#last;
      if (this.#last === undefined) this.#first = entry;
      else this.#last.later = entry;
      this.#last = entry;
    }
    const now = performance.now();
    entry.expiresAt = now + timeoutMs;
    // A scan that is due soon stays: entries that are set anew past their deadline must not put it off.
    if (Math.max(entry.expiresAt, now + RESOLUTION_MS) < this.#nextScan) this.#scheduleScan(entry.expiresAt, now);
  }

  remove(entry: Expiring): void {
    const { earlier, later } = entry;
    if (earlier === undefined && entry !== this.#first) return;
    if (earlier === undefined) this.#first = later;
    else earlier.later = later;
    if (later === undefined) this.#last = earlier;
    else later.earlier = earlier;
    // An old entry must not keep its neighbours from being collected.
    entry.earlier = undefined;
    entry.later = undefined;
    this.#size--;
    // The timer stays for the next request, but must not keep the process alive.
    if (this.#size === 0) this.#timer?.unref();
  }

  /** Expires the entries that are due at `now`. Returns the earliest deadline of the others. */
  expireUntil(now: number): number {
    let earliest = Infinity;
    const due: Expiring[] = [];
    for (let entry = this.#first; entry !== undefined; entry = entry.later) {
      if (entry.expiresAt > now) earliest = Math.min(earliest, entry.expiresAt);
      else due.push(entry);
    }
    for (const entry of due) {
      // Another entry's expiry may have removed it, or set it anew.
      const isListed = entry === this.#first || entry.earlier !== undefined;
      if (!isListed || entry.expiresAt > now) continue;
      this.remove(entry);
      entry.expire(now);
    }
    return earliest;
  }

  #scheduleScan(time: number, now: number): void {
    clearTimeout(this.#timer);
    const waitMs = Math.min(Math.max(time - now, RESOLUTION_MS), MAX_WAIT_MS);
    this.#nextScan = now + waitMs;
    this.#timer = setTimeout(() => this.#scan(), Math.ceil(waitMs));
    if (this.#size === 0) this.#timer.unref();
  }

  #scan(): void {
    const now = performance.now();
    const lateMs = now - this.#nextScan;
    this.#timer = undefined;
    this.#nextScan = Infinity;
    // Timers run before sockets are read: responses that have arrived get a turn of the event loop, and another one if the
    // process was suspended during that turn.
    if (this.#postponements === 0 || (lateMs > LATE_MS && this.#postponements < MAX_POSTPONEMENTS)) {
      this.#postponements++;
      this.#scheduleScan(now, now);
      return;
    }
    this.#postponements = 0;
    const earliest = this.expireUntil(now);
    if (earliest < this.#nextScan) this.#scheduleScan(earliest, now);
  }
}

/** A signal that is aborted with the caller's own signal, or at a deadline. */
export class TimeLimit implements Expiring {
  expiresAt: number = Infinity;
  earlier: Expiring | undefined = undefined;
  later: Expiring | undefined = undefined;
  readonly signal: AbortSignal;
  /** True if the deadline, and not the caller, aborted it. */
  expired = false;
  readonly #controller = new AbortController();
  readonly #deadlines: Deadlines;
  readonly #outer: AbortSignal | undefined;

  /** @param timeoutMs `Infinity` for no limit */
  constructor(deadlines: Deadlines, timeoutMs: number, outer: AbortSignal | undefined) {
    this.signal = this.#controller.signal;
    this.#deadlines = deadlines;
    this.#outer = outer;
    if (timeoutMs !== Infinity) deadlines.set(this, timeoutMs);
    if (outer?.aborted) this.handleEvent();
    else outer?.addEventListener('abort', this);
  }

  get remainingMs(): number {
    return this.expiresAt - performance.now();
  }

  /** Called when the caller's signal is aborted. */
  handleEvent(): void {
    this.abort(this.#outer?.reason);
  }

  expire(): void {
    this.expired = true;
    this.abort();
  }

  abort(reason?: unknown): void {
    this.end();
    this.#controller.abort(reason);
  }

  /** Releases the clock and the caller's signal. To be called when what it limits is over. */
  end(): void {
    this.#deadlines.remove(this);
    this.#outer?.removeEventListener('abort', this);
  }
}
