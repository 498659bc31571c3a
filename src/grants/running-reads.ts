/** Age up to which a read is joined, in milliseconds: later callers need not wait as long as one that may hang. */
const JOIN_MS = 500;

/** A read that runs. */
interface RunningRead<T> {
  readonly result: Promise<T>;
  /** On the monotonic clock. */
  readonly since: number;
}

/** Tracks the reads that run, by id, so that callers can join them and writes can overtake them. */
export class RunningReads<T> {
  /** The newest last. Without those that a write has overtaken. */
  readonly #reads = new Map<string, Set<RunningRead<T>>>();

  /** Returns the result of a read that has just begun, if there is one. */
  join(id: string): Promise<T> | undefined {
    const newest = [...(this.#reads.get(id) ?? [])].at(-1);
    return newest && performance.now() - newest.since < JOIN_MS ? newest.result : undefined;
  }

  /** Adds a read. Returns a function that ends it, and those that began before it; false says that a write has overtaken it, so that its result may be stale. */
  add(id: string, result: Promise<T>): () => boolean {
    const read = { result, since: performance.now() };
    this.#reads.set(id, (this.#reads.get(id) ?? new Set()).add(read));
    return () => {
      const reads = this.#reads.get(id);
      if (!reads?.has(read)) return false;
      for (const earlier of reads) {
        reads.delete(earlier);
        if (earlier === read) break;
      }
      if (reads.size === 0) this.#reads.delete(id);
      return true;
    };
  }

  /** Marks all reads of the id as overtaken by a write. */
  overtake(id: string): void {
    this.#reads.delete(id);
  }
}
