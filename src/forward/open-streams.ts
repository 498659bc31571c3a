/** Most calls of one grant with a streamed body at once, in this process. */
export const MAX_STREAMS = 16;

/** Counts the calls of each grant that stream a body, so that no user takes all connections to the API. */
export class OpenStreams {
  readonly #counts = new Map<string, number>();

  /** Returns a permit for the call of a grant. It counts once the call takes it. */
  permitFor(grantId: string): StreamPermit {
    const counts = this.#counts;
    let isTaken = false;
    return {
      take: () => {
        const count = counts.get(grantId) ?? 0;
        if (isTaken || count >= MAX_STREAMS) return isTaken;
        counts.set(grantId, count + 1);
        isTaken = true;
        return true;
      },
      release: () => {
        if (!isTaken) return;
        isTaken = false;
        const others = (counts.get(grantId) ?? 1) - 1;
        if (others > 0) counts.set(grantId, others);
        else counts.delete(grantId);
      },
    };
  }
}

/** Lets one call stream its bodies. */
export interface StreamPermit {
  /** Returns false if the grant has too many streams already. A call counts once. */
  take(): boolean;
  release(): void;
}
