import { setTimeout as delay } from 'node:timers/promises';
import { vi } from 'vitest';
import { type Fleet, startFleet } from '../processes/fleet.js';
import type { Worker } from '../support/processes.js';
import type { Harm, Target } from './servers.js';

/** What one kind of harm has done. */
export interface Figures {
  readonly requests: number;
  /** Answers other than 200 while the harm lasted, and until all was well again. */
  readonly unavailable: number;
  /** Users who had to log in again. */
  readonly loginsLost: number;
  readonly tokenRequests: number;
  /** How often the access tokens expired: each user's needs one token request. */
  readonly rotationsNeeded: number;
  readonly slowestMs: number;
}

const USERS = Array.from({ length: 20 }, (_, index) => `${index + 1}`);
const HOURS = 3600;
/** Seconds. Shorter than the default, so that processes that die or freeze past it are found within a trial. */
const LEASE_S = 6;

/**
 * Runs three processes over the target, whose tokens expire while 20 users send requests, does harm, ends it, and looks
 * whether every user is still logged in. The service ends a grant whose used refresh token is shown again.
 */
export async function tryHarm(
  target: Target,
  harm: (fleet: Fleet) => ReturnType<Harm>,
  lastsMs = 3000,
): Promise<Figures> {
  const fleet = await startFleet(target, { processes: 3, users: USERS, lease: LEASE_S, refreshTokenReuse: 'revoke' });
  const totals = { requests: 0, unavailable: 0, slowestMs: 0 };
  const ask = async (worker: Worker, user: string): Promise<number> => {
    const startedAt = performance.now();
    const { status } = await worker.ask(user).catch(() => ({ status: 0 }));
    totals.requests += 1;
    if (status !== 200) totals.unavailable += 1;
    totals.slowestMs = Math.max(totals.slowestMs, performance.now() - startedAt);
    return status;
  };
  try {
    let rotations = 0;
    const expire = async (): Promise<void> => {
      rotations += USERS.length;
      fleet.service.advance(2 * HOURS);
      await Promise.all(living(fleet).map((worker) => worker.advance(2 * HOURS)));
    };
    const askAll = () => Promise.all(living(fleet).flatMap((worker) => USERS.map((user) => ask(worker, user))));
    await expire();
    await askAll();
    // Tokens expire right before the harm, so that refreshes are under way when it comes, and once while it lasts.
    await expire();
    fleet.service.fail('token', { delay: 100, times: 30 });
    const asked: Promise<unknown>[] = [askAll()];
    await vi.waitUntil(() => fleet.tokenRequests() > USERS.length);
    const heal = await harm(fleet);
    const healed = delay(lastsMs).then(heal);
    let isHealed = false;
    void healed.then(() => {
      isHealed = true;
    });
    asked.push(delay(lastsMs / 2).then(expire));
    while (!isHealed) {
      const round = askAll();
      asked.push(round);
      // A process that is frozen answers only when it goes on.
      await Promise.race([round.then(() => delay(100)), healed]);
    }
    await Promise.all(asked);
    const lost: string[] = [];
    for (const user of USERS) {
      let status = 0;
      const isBack = async (): Promise<boolean> => {
        status = await ask(living(fleet)[0] as Worker, user);
        return status === 200 || status === 401;
      };
      await vi.waitUntil(isBack, { timeout: 30_000, interval: 100 });
      if (status === 401) lost.push(user);
    }
    await expire();
    await askAll();
    return {
      ...totals,
      loginsLost: lost.length,
      tokenRequests: fleet.tokenRequests(),
      rotationsNeeded: rotations,
      slowestMs: Math.round(totals.slowestMs),
    };
  } finally {
    await fleet.close();
  }
}

export const FROZEN_PAST_LEASE = 'SIGSTOP of a process, past its lease';

/** Harm to the processes of the application themselves. */
export const processHarms: Readonly<Record<string, (fleet: Fleet) => ReturnType<Harm>>> = {
  'SIGSTOP of a process': async ({ workers }) => {
    workers[2]?.signal('SIGSTOP');
    return () => workers[2]?.signal('SIGCONT');
  },
  [FROZEN_PAST_LEASE]: async ({ workers }) => {
    workers[2]?.signal('SIGSTOP');
    return () => workers[2]?.signal('SIGCONT');
  },
  'kill -9 of a process': async ({ workers }) => {
    await workers[2]?.kill();
    return () => undefined;
  },
};

function living({ workers }: Fleet): readonly Worker[] {
  return workers.filter((worker) => worker.isAlive);
}
