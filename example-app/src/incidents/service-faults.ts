import { setTimeout as pause } from 'node:timers/promises';
import type { Emulator, Fault } from 'passport-oauth-app/emulator';

/** Something that goes wrong at the service. */
export type ServiceFault =
  /** All access tokens so far are refused. */
  | 'refuse'
  /** The next refresh takes 300 ms, as over a network. */
  | 'distant'
  /** The next refresh takes three seconds. */
  | 'slow'
  | 'outage'
  | 'bad-secret'
  | 'lost-answer'
  | 'revoke'
  /** Resolves when the next token request has arrived. */
  | 'await-refresh'
  /** Ends all faults. */
  | 'mend';

/** Causes a fault at the service. @param userId The account that is revoked. */
export type BreakService = (fault: ServiceFault, userId: string | undefined) => Promise<void>;

const lasting = Number.POSITIVE_INFINITY;
const tokenFaults: Partial<Record<ServiceFault, Fault & { readonly seconds?: number }>> = {
  distant: { delay: 300 },
  slow: { delay: 3_000 },
  outage: { status: 503, headers: { 'Retry-After': '2' }, times: lasting, seconds: 30 },
  'bad-secret': { body: { error: 'invalid_client' }, times: lasting, seconds: 15 },
  'lost-answer': { afterEffect: true },
};

/** Returns a function that causes faults at an emulated service. Faults that last end by themselves, or with `mend`. */
export function serviceBreaker(service: Emulator): BreakService {
  const ends = new Set<() => void>();
  return async function breakService(fault, userId) {
    if (fault === 'refuse') service.expireAccessTokens();
    if (fault === 'revoke' && userId !== undefined) service.revoke(userId);
    if (fault === 'await-refresh') await nextTokenRequest(service);
    if (fault === 'mend') {
      for (const end of ends) end();
      ends.clear();
    }
    const { seconds, ...tokenFault } = tokenFaults[fault] ?? {};
    if (!tokenFaults[fault]) return;
    const end = service.fail('token', tokenFault);
    ends.add(end);
    if (seconds !== undefined) setTimeout(end, seconds * 1000).unref();
  };
}

/** Resolves when the token endpoint receives a request. Polls, because the emulator has no event for it. */
async function nextTokenRequest({ requests }: Emulator): Promise<void> {
  const latest = () => requests.findLast(({ path }) => path === '/oauth/token');
  const before = latest();
  for (let looks = 0; looks < 500 && latest() === before; looks += 1) await pause(10);
}
