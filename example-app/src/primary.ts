import type { Emulator, Fault } from 'passport-oauth-app/emulator';
import type { Cause, Entry, Happening } from './panel/journal.js';
import type { Recorder } from './panel/recorder.js';

/** What goes wrong in an incident. Unless it is said otherwise, the service refuses all access tokens. */
export interface Effect {
  /** The service ends the grants of the user instead, or all faults end. */
  readonly instead?: 'revoke' | 'mend';
  /** What befalls the next refresh; or all of them for some seconds, unless they are mended before. */
  readonly fault?: Fault & { readonly seconds?: number };
  /** The operations that the token store still does for some seconds. */
  readonly store?: readonly [working: readonly string[], seconds: number];
}

/** What the primary process asks of one that answers requests. */
export interface Worker {
  add(entry: Entry): Promise<void>;
  breakStore(working: readonly string[], seconds: number): Promise<void>;
  /** Makes an API call for each cause, all at once. Resolves when they have ended, well or not. */
  burst(grantId: string, causes: readonly Cause[]): Promise<void>;
  /** Lets what is under way finish, and ends the server. */
  end(): Promise<void>;
}

/** What a process that answers requests asks of the one with the emulated service. With `npm start` they are the same. */
export type Primary = ReturnType<typeof createPrimary>;

/** Returns what all workers share. A real service is not broken. */
export function createPrimary(workers: readonly Worker[], recorder: Recorder, service: Emulator | undefined) {
  const mends = new Set<() => void>();
  const ofAll = async (call: (worker: Worker, index: number) => Promise<void>) => {
    await Promise.all(workers.map(call));
  };
  return {
    /** Adds an event of one process to the journals of all. */
    async tell(happening: Happening): Promise<void> {
      const entry = recorder.record(happening, service?.requests ?? []);
      if (entry) await ofAll((worker) => worker.add(entry));
    },
    /** Breaks the service, and the token store in all processes. */
    async breakParts({ instead, fault, store }: Effect, userId: string): Promise<void> {
      if (instead === 'revoke') service?.revoke(userId);
      else if (instead === 'mend') for (const mend of mends) mend();
      else service?.expireAccessTokens();
      const { seconds = 0, ...once } = fault ?? {};
      const mend = fault && service?.fail('token', seconds > 0 ? { ...once, times: Number.POSITIVE_INFINITY } : once);
      if (mend) mends.add(mend);
      if (mend && seconds > 0) setTimeout(mend, seconds * 1000).unref();
      if (store) await ofAll((worker) => worker.breakStore(...store));
    },
    /** Makes calls at once, shared out among all processes. Resolves when the journals have them. */
    burst(grantId: string, causes: readonly Cause[]): Promise<void> {
      const share = causes.length / workers.length;
      return ofAll((worker, index) => worker.burst(grantId, causes.slice(index * share, (index + 1) * share)));
    },
  };
}
