import type { Machine } from './machine.js';
import type { Family, Pair, Token } from './service.js';
import { tokensIn } from './service.js';
import { LEASE_MS, type Lease, type StoreWrite } from './store.js';
import type { World } from './world.js';

/** How a login came to its end though nobody had logged out, as far as nobody could have kept it. */
export type Loss =
  /** The service gave a new pair, and no process ever saw it. */
  | 'answer lost'
  /** The only process that had the pair died before the store had it. */
  | 'crash'
  /** The store forgot the pair, and no process had it any more, or another one looked before the one that had it. */
  | 'failover'
  /** The process that had the pair stood still until its lease was over. */
  | 'holder frozen'
  /** The process that had the pair could not reach the store until its lease was over. */
  | 'holder cut off'
  /** The process stood still between its last look at the lock and the request's first byte. */
  | 'frozen while sending'
  /** Three saves were refused over some 15 s. */
  | 'saves refused'
  /** A request that its process had given up reached the service after another one. */
  | 'request came late'
  /** The store forgot a logout: the login goes on. */
  | 'logout forgotten';

/** Something that must not happen. */
export interface Violation {
  readonly invariant:
    | 'one request'
    | 'kept'
    | 'saved'
    | 'logged out'
    | 'own token'
    | 'settles'
    | 'no rejection'
    | 'empty';
  readonly detail: string;
  readonly time: number;
}

/** How a rotation went on after the service had done it. */
interface Rotation {
  readonly pair: Pair;
  readonly machine: Machine;
  readonly time: number;
  /** When the process sent its request. */
  readonly issuedAt: number;
  readonly lease: Lease | undefined;
  refusedSaves: number[];
}

/** Who has shown a refresh token, since when, and whether it still waits for the answer. */
export interface TokenRequest {
  readonly machine: Machine;
  readonly issuedAt: number;
  readonly isAwaited: boolean;
}

/** What is known of a user's login. */
interface Login {
  readonly user: string;
  state: 'out' | 'in' | 'unsure';
  since: number;
  /** Families that the user may be logged in with. */
  families: Set<number>;
  /** Families of tries that failed before the login: their saves may still come. */
  readonly givenUp: Set<number>;
  /** Where the store keeps the grant. */
  readonly ids: Set<string>;
  /** How it ended by itself. */
  end: { readonly loss: Loss | undefined; readonly detail: string; readonly time: number } | undefined;
  /** A login that the store reported as failed: it may come late. */
  mayComeLate: boolean;
  /** What a failover has made of the store's record: forgot it, or brought it back after a logout. */
  failedOver: 'forgotten' | 'brought back' | undefined;
  /** Since when the store has had a good pair, with no other given by the service. */
  wholeSince: number;
}

/** How long a cached grant is believed, with room for what is under way. */
const STALE_MS = 60_000;
/** How long after a failure a process takes the store to be down, and how long it waits for an answer. */
const DOWN_MS = 1_000;
/** Over how long three saves must have been refused before the lock may be given back. */
const SAVES_MS = 12_000;

/** Watches a world: who has which token, what the service honours, and what must never happen. */
export class Oracle {
  readonly violations: Violation[] = [];
  readonly #storeFailedAt = new Map<Machine, number>();
  /** Commands that the store has not answered. */
  readonly #storeAsked = new Set<{ readonly machine: Machine; readonly since: number }>();
  /** Used refresh tokens that were shown. */
  reuses = 0;
  /** Whether a user has logged out. */
  hasLogouts = false;
  /** Whether a user who is logged in was told otherwise. */
  hasRefusals = false;
  readonly #world: World;
  readonly #logins = new Map<string, Login>();
  readonly #knowers = new Map<number, Set<Machine>>();
  readonly #onTheirWay = new Map<number, Machine>();
  /** Processes whose last refresh token was shown without the lock. */
  readonly #unlocked = new Set<Machine>();
  readonly #rotations = new Map<number, Rotation>();
  readonly #tokens = new Map<string, readonly Token[]>();

  constructor(world: World) {
    this.#world = world;
  }

  violate(invariant: Violation['invariant'], detail: string): void {
    const { scheduler } = this.#world;
    this.#world.note(this.#world.running, 'VIOLATION', `${invariant}: ${detail}`);
    this.violations.push({ invariant, detail, time: scheduler.now });
  }

  login(user: string): Login {
    const known = this.#logins.get(user);
    if (known) return known;
    const families = new Set<number>();
    const givenUp = new Set<number>();
    const ids = new Set<string>();
    const wholeSince = Number.POSITIVE_INFINITY;
    const login: Login = {
      user,
      state: 'out',
      since: 0,
      families,
      givenUp,
      ids,
      end: undefined,
      mayComeLate: false,
      failedOver: undefined,
      wholeSince,
    };
    this.#logins.set(user, login);
    return login;
  }

  logins(): Iterable<Login> {
    return this.#logins.values();
  }

  /** A login or logout of the user begins, or has ended. */
  loginIs(user: string, state: Login['state']): void {
    const login = this.login(user);
    login.state = state;
    login.since = this.#world.scheduler.now;
    // A login may be lost before its callback has ended.
    if (state !== 'in') login.end = undefined;
    if (state === 'unsure') login.failedOver = undefined;
    this.#world.note(undefined, `login of ${user}`, state);
    if (state === 'in') {
      login.mayComeLate = false;
      // What earlier tries were given is good at the service, but nobody's login.
      for (const id of [...login.families].slice(0, -1)) login.givenUp.add(id);
      login.families = new Set([...login.families].slice(-1));
    }
    if (state !== 'out') return;
    this.hasLogouts = true;
    this.#checkLoggedOut(login);
  }

  /** A login has failed: its save may still come. */
  loginFailed(user: string): void {
    this.login(user).mayComeLate = true;
  }

  /** The token endpoint has given a pair. */
  gave(pair: Pair, machine: Machine, issuedAt: number): void {
    const { scheduler, store } = this.#world;
    const login = this.login(pair.family.user);
    if (pair.shown === undefined) login.families.add(pair.family.id);
    this.#onTheirWay.set(pair.serial, machine);
    login.wholeSince = Number.POSITIVE_INFINITY;
    const lease = [...login.ids].map((id) => store.lease(id)).find((found) => found?.machine === machine);
    const rotation: Rotation = { pair, machine, time: scheduler.now, issuedAt, lease, refusedSaves: [] };
    if (pair.shown !== undefined) this.#rotations.set(pair.shown, rotation);
    if (pair.shown !== undefined && this.#isOut(login) && scheduler.now - login.since > STALE_MS)
      this.violate('logged out', `${machine.name} refreshes the grant of ${login.user}, who has logged out`);
  }

  /** A process has the pair. */
  learned(pair: Pair, machine: Machine): void {
    this.#onTheirWay.delete(pair.serial);
    this.#know(pair.serial, machine);
  }

  /** No process will ever have the pair. @param hasArrived Whether its process has thrown it away */
  lost(pair: Pair, hasArrived: boolean): void {
    this.#onTheirWay.delete(pair.serial);
    if (hasArrived) this.#checkLife(pair.family, () => [undefined, `the answer with ${pair.serial} was not read`]);
    else this.#checkLife(pair.family, () => ['answer lost', `the answer with ${pair.serial} was lost`]);
  }

  /** A refresh token leaves its process for the service. */
  shows(token: Token, machine: Machine, issuedAt: number): void {
    const { service, store, scheduler } = this.#world;
    const family = service.family(token.family);
    if (!family) return;
    const { ids, user } = this.login(family.user);
    const hasLease = [...ids].some((id) => store.lease(id)?.machine === machine);
    if (hasLease) this.#unlocked.delete(machine);
    else this.#unlocked.add(machine);
    if (hasLease || issuedAt < scheduler.now || this.#hasFailedOver(scheduler.now - 2 * LEASE_MS)) return;
    this.violate('one request', `${machine.name} shows a refresh token of ${user} without the lock`);
  }

  /** A used refresh token was shown. */
  reused(family: Family, token: Token, request: TokenRequest): void {
    this.reuses += 1;
    this.#world.note(request.machine, 'shows a used refresh token', `${token.serial}`);
    if (!family.isRevoked) return;
    this.#checkLife(family, () => this.#whyReused(token, request));
  }

  /** The store has a record in place of another. */
  stored({ id, before, after, op, machine }: StoreWrite): void {
    const tokens = this.#tokensOf(after);
    const families = [...new Set([...tokens, ...this.#tokensOf(before)].map(({ family }) => family))];
    this.#world.note(machine, `the store has`, `${id} ${op} ${tokens.map(({ serial }) => serial).join()}`);
    for (const familyId of families) {
      const family = this.#world.service.family(familyId);
      if (!family) continue;
      const login = this.login(family.user);
      login.ids.add(id);
      if (op === 'set' && tokens.some((token) => token.family === familyId)) {
        // The late save of a try that was given up has replaced the login: the store decides which one goes on.
        if (login.givenUp.has(familyId)) login.families.clear();
        login.families.add(familyId);
      }
      if (op === 'failover') this.#checkLife(family, () => ['failover', 'the store forgot the pair']);
      else this.#checkLife(family, () => [undefined, `${machine?.name}'s ${op} removed the last trace of the pair`]);
      if (op === 'failover' && after === undefined) login.failedOver = 'forgotten';
      else if (op === 'failover' && login.state !== 'in') login.failedOver = 'brought back';
      if (!this.isSaved(login)) login.wholeSince = Number.POSITIVE_INFINITY;
      else login.wholeSince = Math.min(login.wholeSince, this.#world.scheduler.now);
      if (tokens.length > 0 && this.#isOut(login))
        this.violate('logged out', `${machine?.name}'s ${op} brings back the grant of ${login.user}`);
    }
  }

  /** A process has read a record. */
  read(record: string | undefined, machine: Machine): void {
    for (const { serial, kind } of this.#tokensOf(record)) if (kind === 'refresh') this.#know(serial, machine);
  }

  /** A process sends a command to the store. Returns what is called once the command is answered or has failed. */
  storeAsked(machine: Machine): () => void {
    const asked = { machine, since: this.#world.scheduler.now };
    this.#storeAsked.add(asked);
    return () => this.#storeAsked.delete(asked);
  }

  /** The store has failed a process. */
  storeFailed(machine: Machine, op: string): void {
    this.#storeFailedAt.set(machine, this.#world.scheduler.now);
    if (op !== 'update' && op !== 'set') return;
    for (const rotation of this.#rotations.values())
      if (rotation.machine === machine) rotation.refusedSaves.push(this.#world.scheduler.now);
  }

  failedOver(): void {
    for (const login of this.#logins.values()) this.#checkLogin(login, () => ['failover', 'the store forgot the pair']);
  }

  crashed(machine: Machine): void {
    for (const [serial, receiver] of this.#onTheirWay) if (receiver === machine) this.#onTheirWay.delete(serial);
    for (const login of this.#logins.values()) this.#checkLogin(login, () => ['crash', `${machine.name} died`]);
  }

  /** A request of `user`, begun at `begun`, was answered by the API. */
  authorized(user: string, machine: Machine, begun: number): void {
    const login = this.login(user);
    if (!this.#isOut(login) || begun - login.since < STALE_MS || this.#world.isCut(machine, 'store')) return;
    // While its store fails, or does not answer for a second, a process goes on with the grants that it has seen last. A
    // read that is too late, because the process stood still, is such a failure.
    if ((this.#storeFailedAt.get(machine) ?? -Infinity) >= begun - DOWN_MS) return;
    const { now } = this.#world.scheduler;
    for (const asked of this.#storeAsked) if (asked.machine === machine && now - asked.since >= DOWN_MS) return;
    this.violate('logged out', `${machine.name} goes on for ${user}, who has logged out`);
  }

  /** A request of `user`, begun at `begun`, was told that nobody is logged in. */
  unauthorized(user: string, machine: Machine, begun: number): void {
    const { state, since, wholeSince, families } = this.login(user);
    if (state !== 'in') return;
    this.hasRefusals = true;
    if (since > begun || wholeSince > begun) return;
    if ([...families].every((id) => this.#world.service.family(id)?.isRevoked)) return;
    this.violate('kept', `${machine.name} knows nothing of the login of ${user}, which is good and saved`);
  }

  /** Whether a refresh token that the service takes is in the store, in a process, or on its way to one. */
  isLiving(login: Login): boolean {
    return [...login.families].some((id) => {
      const family = this.#world.service.family(id);
      return family !== undefined && !family.isRevoked && this.#isHeld(login, family);
    });
  }

  /** Whether the store has a refresh token that the service takes. */
  isSaved(login: Login): boolean {
    const records = [...login.ids].map((id) => this.#world.store.record(id));
    return records.some((record) => this.#tokensOf(record).some((token) => this.#world.service.honours(token)));
  }

  #isHeld(login: Login, family: Family): boolean {
    if (this.isSaved(login)) return true;
    const serials = family.previous === undefined ? [family.current] : [family.current, family.previous];
    return serials.some((serial) => {
      if (this.#onTheirWay.has(serial)) return true;
      return [...(this.#knowers.get(serial) ?? [])].some(({ isAlive }) => isAlive);
    });
  }

  /** Whether the user has logged out, and neither the store nor a late write can have undone it. */
  #isOut({ state, mayComeLate, failedOver }: Login): boolean {
    return state === 'out' && !mayComeLate && failedOver === undefined;
  }

  #know(serial: number, machine: Machine): void {
    const knowers = this.#knowers.get(serial);
    if (knowers) knowers.add(machine);
    else this.#knowers.set(serial, new Set([machine]));
  }

  #checkLife(family: Family, why: () => [Loss | undefined, string]): void {
    this.#checkLogin(this.login(family.user), why);
  }

  #checkLogin(login: Login, why: () => [Loss | undefined, string]): void {
    const isLiving = this.isLiving(login);
    if (isLiving) login.end = undefined;
    if (isLiving || login.end || login.state === 'out' || login.families.size === 0) return;
    const [loss, detail] = why();
    login.end = { loss, detail, time: this.#world.scheduler.now };
    this.#world.note(undefined, `the login of ${login.user} has ended`, `${loss ?? 'WITHOUT NEED'}: ${detail}`);
  }

  /** Names the reason why a process has shown a refresh token that was used already. */
  #whyReused(token: Token, { machine, issuedAt, isAwaited }: TokenRequest): [Loss | undefined, string] {
    const rotation = this.#rotations.get(token.serial);
    const what = `${machine.name} showed the used refresh token ${token.serial}`;
    if (isFrozenSending(machine, issuedAt) || (rotation && isFrozenSending(rotation.machine, rotation.issuedAt)))
      return ['frozen while sending', what];
    if (!isAwaited) return ['request came late', what];
    if (!rotation) return [undefined, `${what}, which nobody has rotated`];
    const { lease, machine: holder, time, refusedSaves } = rotation;
    const whose = `${what} of ${holder.name}`;
    if (this.#hasFailedOver(time - LEASE_MS)) return ['failover', whose];
    if (this.#unlocked.has(machine)) return [undefined, `${whose}, without the lock`];
    if (lease === undefined) return [undefined, `${whose}, which had no lock`];
    const released = this.#world.store.releases.get(lease.owner);
    if (released === undefined) {
      if (holder.freezes.some(({ until }) => until > time)) return ['holder frozen', whose];
      if (refusedSaves.length > 0) return ['holder cut off', whose];
      return [undefined, `${whose}, whose lease was over`];
    }
    const refused = refusedSaves.filter((at) => at <= released);
    if (refused.length >= 3 && released - time >= SAVES_MS) return ['saves refused', whose];
    return [undefined, `${whose}, which gave its lock back with the pair unsaved`];
  }

  #hasFailedOver(since: number): boolean {
    return this.#world.store.failovers.some((time) => time >= since);
  }

  #checkLoggedOut(login: Login): void {
    if (this.#isOut(login) && this.isSaved(login))
      this.violate('logged out', `the store still has the grant of ${login.user}`);
  }

  #tokensOf(record: string | undefined): readonly Token[] {
    if (record === undefined) return [];
    const known = this.#tokens.get(record);
    if (known) return known;
    const { sealed } = JSON.parse(record) as { readonly sealed: string };
    // Without keys a record is text, encoded so that no log shows its tokens.
    const tokens = tokensIn(`${sealed} ${Buffer.from(sealed, 'base64url').toString('latin1')}`);
    this.#tokens.set(record, tokens);
    return tokens;
  }
}

function isFrozenSending({ freezes }: Machine, issuedAt: number): boolean {
  return freezes.some(({ way, until }) => way === 'leave' && until > issuedAt);
}
