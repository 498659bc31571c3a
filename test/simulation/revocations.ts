import { forgottenOf } from './oracle.js';
import type { World } from './world.js';

/** What the package tells of a grant. */
export interface GrantEvent {
  readonly grantId: string;
  readonly action: string;
}

/** A grant that its user has asked to end. */
interface Ended {
  readonly user: string;
  readonly family: number;
  readonly since: number;
}

/** Watches what becomes of tokens at the service once their users have logged out. */
export class Revocations {
  readonly #world: World;
  readonly #ended: Ended[] = [];
  /** Reports of revocations that have failed. */
  readonly #failed: { readonly user: string; readonly time: number }[] = [];
  /** Whether a process revokes nothing. */
  isIncomplete = false;

  constructor(world: World) {
    this.#world = world;
  }

  /** A user wants to log out. @param isBusy Whether a login or logout of the user still runs: then nothing begins */
  logoutBegins(user: string, isBusy: boolean): void {
    const { oracle, scheduler } = this.#world;
    const login = oracle.login(user);
    if (isBusy || login.state !== 'in' || login.end || forgottenOf(login)) return;
    for (const family of login.families) this.#ended.push({ user, family, since: scheduler.now });
  }

  /** The package has told of a grant. */
  told({ grantId, action }: GrantEvent): void {
    this.#world.note(undefined, `the grant of ${grantId}`, action);
    if (action === 'revocation-failed') this.#failed.push({ user: grantId, time: this.#world.scheduler.now });
  }

  /** At the end: no pair of a login that was ended still works, but for those whose revocation was reported as failed. */
  check(): void {
    const { oracle, options, service } = this.#world;
    if (!options.revokes || this.isIncomplete) return;
    for (const ended of this.#ended) {
      const family = service.family(ended.family);
      if (!family || family.isRevoked || this.#isExcused(ended, family.current)) continue;
      oracle.violate(
        'revoked',
        `the service still takes the token ${family.current} of ${ended.user}, who has logged out`,
      );
    }
  }

  /**
   * Whether no process could revoke the pair: none has it, the one that had it died, or the store has lost or misread the
   * record. Or whether none may: the user had logged in again before it came, and that login might end with it.
   */
  #isExcused({ user, since }: Ended, serial: number): boolean {
    const { oracle, store } = this.#world;
    const { ids, undone } = oracle.login(user);
    return (
      this.#failed.some((report) => report.user === user && report.time >= since) ||
      oracle.unseen.has(serial) ||
      oracle.hasDied(serial, since) ||
      oracle.isAfterLogin(serial) ||
      undone !== undefined ||
      oracle.hasFailedOver(ids, since - 60_000) ||
      store.staleReads.some(({ id, time }) => ids.has(id) && time >= since - 60_000) ||
      store.evictedRecords.some(({ id, time }) => ids.has(id) && time >= since - 60_000)
    );
  }
}
