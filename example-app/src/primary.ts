import type { Emulator, Fault } from 'passport-oauth-app/emulator';
import type { Cause, Entry, Happening } from './panel/journal.js';
import type { Recorder } from './panel/recorder.js';

/** A fault of the token endpoint, of one request or for some seconds. */
export type TokenFault = Fault & { readonly seconds?: number };

/** What the primary process asks of one that answers requests. */
export interface Worker {
  add(entry: Entry): Promise<void>;
  /** Lets the token store do only these of its operations for some seconds. */
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
  const faults = new Set<() => void>();
  const ofAll = async (call: (worker: Worker, index: number) => Promise<void>) => {
    await Promise.all(workers.map(call));
  };
  return {
    /** Adds an event of one process to the journals of all. */
    async tell(happening: Happening): Promise<void> {
      const entry = recorder.record(happening, service?.requests ?? []);
      if (entry) await ofAll((worker) => worker.add(entry));
    },
    async refuseTokens(): Promise<void> {
      service?.expireAccessTokens();
    },
    async revoke(userId: string): Promise<void> {
      service?.revoke(userId);
    },
    /** Faults that last end by themselves, or with `mend`. */
    async failRefreshes({ seconds = 0, ...fault }: TokenFault): Promise<void> {
      const end = service?.fail('token', seconds > 0 ? { ...fault, times: Number.POSITIVE_INFINITY } : fault);
      if (!end) return;
      faults.add(end);
      if (seconds > 0) setTimeout(end, seconds * 1000).unref();
    },
    /** Breaks the token store in all processes. */
    breakStore: (working: readonly string[], seconds: number) => ofAll((worker) => worker.breakStore(working, seconds)),
    /** Ends all faults, of the service and of the token store. */
    async mend(): Promise<void> {
      for (const end of faults) end();
      await ofAll((worker) => worker.breakStore([], 0));
    },
    /** Makes calls at once, shared out among all processes. Resolves when the journals have them. */
    burst(grantId: string, causes: readonly Cause[]): Promise<void> {
      const share = causes.length / workers.length;
      return ofAll((worker, index) => worker.burst(grantId, causes.slice(index * share, (index + 1) * share)));
    },
  };
}
