import type { Emulator } from 'passport-oauth-app/emulator';
import type { BurstOrder } from './panel/burst.js';
import type { Entry, Happening } from './panel/journal.js';
import type { Recorder } from './panel/recorder.js';
import { type BreakService, serviceBreaker } from './service.js';

/** The operations of a token store that fail. */
export type Breakage = 'none' | 'writes' | 'all';

/** What the primary process asks of one that answers requests. */
export interface Worker {
  add(entry: Entry): Promise<void>;
  breakStore(broken: Breakage): Promise<void>;
  burst(grantId: string, order: BurstOrder): Promise<void>;
  /** Lets what is under way finish, and ends the server. */
  end(): Promise<void>;
}

/** What a process that answers requests asks of the one with the emulated service. With `npm start` they are the same. */
export interface Primary {
  /** Adds an event of one process to the journals of all. */
  tell(happening: Happening): Promise<void>;
  readonly breakService: BreakService;
  /** Breaks the token store in all processes. */
  breakStore(broken: Breakage): Promise<void>;
  /** Makes calls at once, in all processes. Resolves when the journals have them. */
  burst(grantId: string, order: BurstOrder): Promise<void>;
}

/** Returns what all workers share. A real service is not broken. */
export function createPrimary(workers: readonly Worker[], recorder: Recorder, service: Emulator | undefined): Primary {
  const ofAll = async (call: (worker: Worker, index: number) => Promise<void>) => {
    await Promise.all(workers.map(call));
  };
  return {
    async tell(happening) {
      const entry = recorder.record(happening);
      if (entry) await ofAll((worker) => worker.add(entry));
    },
    breakService: service ? serviceBreaker(service) : async () => {},
    breakStore: (broken) => ofAll((worker) => worker.breakStore(broken)),
    burst(grantId, order) {
      const count = order.count / workers.length;
      return ofAll((worker, index) => worker.burst(grantId, { ...order, from: order.from + index * count, count }));
    },
  };
}
