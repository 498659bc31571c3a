import { setTimeout as delay } from 'node:timers/promises';
import { expect, vi } from 'vitest';
import { type Fleet, startFleet } from '../processes/fleet.js';
import type { Worker } from '../support/processes.js';
import { storeId } from '../support/store-id.js';
import { until } from '../support/until.js';
import { formerWorker } from './former-version.js';
import type { Harm, Target } from './servers.js';

/** What one kind of harm has done. */
export interface Figures {
  readonly requests: number;
  /** Answers other than 200 while the harm lasted, and until all was well again. */
  readonly unavailable: number;
  /** Users who had to log in again for no reason that has a name. */
  readonly loginsLost: number;
  /** Users who had to log in again for a reason of docs/refresh-protocol.md, by its name. */
  readonly lostByName: Readonly<Record<string, number>>;
  readonly tokenRequests: number;
  /** How often the access tokens expired: each user's needs one token request. */
  readonly rotationsNeeded: number;
  readonly slowestMs: number;
}

/** Harm to a process of the application itself, or to the store. */
type FleetHarm = (fleet: Fleet) => ReturnType<Harm>;

const USERS = Array.from({ length: 20 }, (_, index) => `${index + 1}`);
const HOURS = 3600;
/** Seconds: the default, and a shorter one, so that a process that freezes past it or dies is found within a trial. */
const [DEFAULT_LEASE_S, LEASE_S] = [30, 6];
/** Which of three processes is harmed by {@link processHarms}. */
const HARMED = 2;

const KILLED = 'kill -9 of a process';
const ROLLING_DEPLOY = 'rolling deploy from 5089aee';
export const FROZEN_PAST_LEASE = 'SIGSTOP of a process, past its lease';

/** Harm to a process of the application. */
export const processHarms: Readonly<Record<string, FleetHarm>> = {
  'SIGSTOP of a process': freeze,
  [FROZEN_PAST_LEASE]: freeze,
  [KILLED]: async ({ workers }) => {
    await workers[HARMED]?.kill();
    return () => undefined;
  },
  [ROLLING_DEPLOY]: async (fleet) => {
    const deploy = async (): Promise<void> => {
      for (const index of fleet.workers.keys()) await fleet.replace(index);
    };
    const deployed = deploy();
    return () => deployed;
  },
};

async function freeze({ workers }: Fleet): Promise<() => void> {
  workers[HARMED]?.signal('SIGSTOP');
  return () => workers[HARMED]?.signal('SIGCONT');
}

/**
 * Runs three processes over the target, whose tokens expire while 20 users send requests, does harm, ends it, and looks
 * whether every user is still logged in. The service ends a grant whose used refresh token is shown again.
 */
export async function tryHarm(target: Target, name: string): Promise<Figures> {
  const ofProcess = processHarms[name];
  const harm = ofProcess ?? target.harms[name];
  if (!harm) throw new Error(`unknown harm: ${name}`);
  const lastsMs = name === FROZEN_PAST_LEASE ? (LEASE_S + 3) * 1000 : 3000;
  const lease = ofProcess && name !== ROLLING_DEPLOY ? LEASE_S : DEFAULT_LEASE_S;
  const script = name === ROLLING_DEPLOY ? await formerWorker() : undefined;
  const setting = { processes: 3, users: USERS, lease, timeout: 10_000, script } as const;
  const fleet = await startFleet(target, { ...setting, refreshTokenReuse: 'revoke' });
  const totals = { requests: 0, unavailable: 0, slowestMs: 0 };
  let latest = '';
  const ask = async (worker: Worker, user: string): Promise<'ok' | 'lost' | 'failed'> => {
    const startedAt = performance.now();
    const { status, text } = await worker.ask(user).catch(() => ({ status: 0, text: '' }));
    totals.requests += 1;
    if (status !== 200) totals.unavailable += 1;
    totals.slowestMs = Math.max(totals.slowestMs, performance.now() - startedAt);
    if (status === 200) return 'ok';
    latest = `${status} ${text}`;
    return text.startsWith('NotAuthorizedError') ? 'lost' : 'failed';
  };
  try {
    let rotationsNeeded = 0;
    // Not by the processes' clocks: a lock whose holder's clock has jumped does not count.
    const expire = (): void => {
      rotationsNeeded += USERS.length;
      fleet.service.expireAccessTokens();
    };
    const askAll = () => Promise.all(living(fleet).flatMap((worker) => USERS.map((user) => ask(worker, user))));
    rotationsNeeded += USERS.length;
    await fleet.advance(2 * HOURS);
    await askAll();
    // Tokens expire right before the harm, so that refreshes are under way when it comes, and once while it lasts.
    expire();
    fleet.service.fail('token', { delay: 100, times: 30 });
    const asked: Promise<unknown>[] = [askAll()];
    await until(() => expect(fleet.tokenRequests()).toBeGreaterThan(USERS.length));
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
      const outcome = async () => {
        const answer = await ask(living(fleet)[0] as Worker, user);
        return answer === 'failed' ? undefined : answer;
      };
      const answer = await vi.waitUntil(outcome, { timeout: 60_000, interval: 100 }).catch((cause: unknown) => {
        throw new Error(`user ${user} got no token for a minute: ${latest}`, { cause });
      });
      if (answer === 'lost') lost.push(user);
    }
    expire();
    await askAll();
    const lostByName = target.forgets.includes(name)
      ? await namesOfForgotten(target, fleet, lost)
      : namesInProcess(fleet, name, lost.length);
    return {
      ...totals,
      loginsLost: lost.length - Object.values(lostByName).reduce((sum, count) => sum + count, 0),
      lostByName,
      tokenRequests: fleet.tokenRequests(),
      rotationsNeeded,
    };
  } finally {
    await fleet.close();
  }
}

/** Names what a store has lost, after a harm that lets it forget: the records of users, else leases of processes at work. */
async function namesOfForgotten(
  { tokenStore }: Target,
  fleet: Fleet,
  lost: readonly string[],
): Promise<Record<string, number>> {
  const names = { 'record dropped': 0, 'lease dropped': 0 };
  for (const user of lost) {
    const record = await tokenStore.get(storeId(fleet.service.options, user));
    if (record === undefined) names['record dropped'] += 1;
    else if (names['lease dropped'] < reusedTokens(fleet).length) names['lease dropped'] += 1;
  }
  return names;
}

/** Names what a process that was killed or frozen has lost: new tokens that came to it, or a request that it sent too late. */
function namesInProcess(fleet: Fleet, harm: string, lost: number): Record<string, number> {
  const harmed = String(fleet.workers[HARMED]?.id);
  const reused = reusedTokens(fleet);
  const received = Math.min(lost, reused.filter(([first]) => first === harmed).length);
  if (harm === KILLED) return { crash: received };
  if (harm !== FROZEN_PAST_LEASE) return {};
  const sentLate = reused.filter(([first, ...others]) => first !== harmed && others.includes(harmed)).length;
  return { 'holder frozen': received, 'frozen while sending': Math.min(lost - received, sentLate) };
}

/** Returns the processes that have shown a refresh token, in their order, for each that several have shown. */
function reusedTokens({ service }: Fleet): readonly (readonly string[])[] {
  const showings = new Map<unknown, string[]>();
  for (const { path, headers, body } of service.requests) {
    if (path !== '/oauth/token' || typeof body !== 'object' || body === null || !('refresh_token' in body)) continue;
    showings.set(body.refresh_token, [...(showings.get(body.refresh_token) ?? []), String(headers['x-process'])]);
  }
  return [...showings.values()].filter((processes) => new Set(processes).size > 1);
}

function living({ workers }: Fleet): readonly Worker[] {
  return workers.filter((worker) => worker.isAlive);
}
