import { textOf } from './environment.js';
import type { Delivery, LostAnswer } from './exchange.js';
import type { Machine } from './machine.js';
import type { Family, Pair, Token } from './service.js';
import { tokensIn } from './service.js';
import type { Lease, StoreWrite } from './store.js';
import type { World } from './world.js';

/** How a login came to its end though nobody had logged out, as far as nobody could have kept it. */
export type Loss =
  /** The service gave a new pair, and its answer was lost on the way, or had not arrived at the time limit. */
  | 'answer lost'
  /** The service took the refresh token before once more for a while, and nobody could ask in that time. */
  | 'grace over'
  /** The service gave a new pair, and its answer was damaged so that no refresh token could be read. */
  | 'answer damaged'
  /** The only process that had the pair died before the store had it. */
  | 'crash'
  /**
   * The store forgot the login, and has not had it since. Or it forgot the pair, and no process had it any more, or another
   * one looked before the one that had it.
   */
  | 'failover'
  /** The process that had the unsaved pair stood still for so much of its lease that it could not try long enough to save it. */
  | 'holder frozen'
  /** The process that had the unsaved pair tried to save it, and the store failed each time until the lease was over. */
  | 'holder cut off'
  /**
   * The process stood still between its last look at the lock and the request's first byte, until its lease was over: as it was
   * about to send, or with both of its clocks stopped, so that it cannot know.
   */
  | 'frozen while sending'
  /** Three saves were refused over some 15 s, and the lock was given back. */
  | 'saves refused'
  /** A request that its process had given up reached the service after another one. */
  | 'request came late'
  /** A request was delivered a second time. */
  | 'request came twice'
  /** The store dropped the lease of a process that was at work. */
  | 'lease dropped'
  /** The store dropped the record of the grant. */
  | 'record dropped'
  /** The store answered a read with an older record than it had. */
  | 'stale read'
  /**
   * The answer of a login had no refresh token, and a process with a wrong clock has saved it: its access token counts as good
   * after its end. Nothing can replace it, and the API refuses it until then.
   */
  | 'end unseen'
  /** The store has no `lock`, or no `update`. */
  | 'no lock'
  | 'no update'
  /** The store forgot a logout: the login goes on. */
  | 'logout forgotten'
  /** The store took a login that it had reported as failed, after the logout from a later one: that login goes on. */
  | 'login came late';

/** Something that must not happen. */
export interface Violation {
  readonly invariant:
    | 'one request'
    | 'kept'
    | 'saved'
    | 'logged out'
    | 'own token'
    | 'revoked'
    | 'no secret'
    | 'settles'
    | 'no rejection'
    | 'empty';
  readonly detail: string;
  readonly time: number;
}

/** How a rotation went on after the service had done it. */
interface Rotation {
  readonly pair: Pair;
  readonly request: TokenRequest;
  readonly time: number;
  /** Why the token was shown once more, after the service had rotated it: it has a grace period. */
  readonly whyAgain: Loss | undefined;
  /** Whether no refresh token could be read from the answer. */
  isDamaged: boolean;
  /** When the answer was lost on its way. */
  lostAt: number | undefined;
  /** When its process has had the pair; `undefined` before. */
  learnedAt: number | undefined;
  /** Whether the store had another login of the user by then. */
  isReplaced: boolean;
  /** When the store first had the pair. */
  savedAt: number;
  readonly refusedSaves: number[];
}

/** A request with a refresh token, as it reaches the service. */
export interface TokenRequest {
  readonly machine: Machine;
  /** When the process sent it. */
  readonly issuedAt: number;
  readonly delivery: Delivery;
  /** The lock that the process had when the request left it. */
  readonly lease: Lease | undefined;
}

/** What is known of a user's login. */
export interface Login {
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
  /** Families whose only record the store has lost, and how, until it has one again. */
  readonly forgotten: Map<number, Loss>;
  /**
   * Families whose newest pair no process may keep, until the service gives one more, and why: where it has a grace period, the token
   * before was shown again, and one of the two answers is damaged; or a failover has brought back a record that a process has
   * found dropped.
   */
  readonly forked: Map<number, Loss>;
  /** Whether something has undone a logout: a failover, or the late save of a try that had failed. */
  undone: 'logout forgotten' | 'login came late' | undefined;
  /** Since when the store has had a good pair, with no other given by the service. */
  wholeSince: number;
}

/** How long a cached grant is believed, with room for what is under way. */
const STALE_MS = 60_000;
/** How long after a failure a process takes the store to be down, and how long it waits for an answer. */
const DOWN_MS = 1_000;
/** Over how long three saves must have been refused before the lock may be given back. */
const SAVES_MS = 12_000;
/** How long before its end a lease may be given back: the last save had to end before. */
const LAST_SAVE_MS = 3_500;
/** How long a save takes at most until it has failed, and after how long it is tried again at the latest. */
const SAVE_MS = 8_000;
const SAVE_AGAIN_MS = 13_000;
/** How long a process must wait for an answer of the token endpoint. */
const TIMEOUT_MS = 10_000;
/** For how long earlier faults keep a process from asking again: its pause grows. */
const TROUBLED_MS = 120_000;
/** How long a lease lasts. */
const LEASE_MS = 30_000;
/**
 * No pair that is good is so young when it is refreshed, whoever asks: requests do so later in its life, and the nightly job after a
 * minute. One that the service has revoked is, and one whose access token could not be read.
 */
const YOUNG_MS = 30_000;

/** Watches a world: who has which token, what the service honours, and what must never happen. */
export class Oracle {
  readonly violations: Violation[] = [];
  readonly #storeFailedAt = new Map<Machine, number>();
  /** When processes have last asked who has a lock, and were answered. */
  readonly #lookedAt = new Map<Machine, number>();
  /** Answers that a process has waited for so long that the store passed for down. */
  readonly #lateAnswers: { readonly machine: Machine; readonly since: number; readonly at: number }[] = [];
  /** Commands that the store has not answered. */
  readonly #storeAsked = new Set<{ readonly machine: Machine; readonly since: number }>();
  /** Logins that ended by themselves before the user logged in or out again. */
  readonly losses: Loss[] = [];
  /** Serials of pairs that no process has got. */
  readonly unseen = new Set<number>();
  /** When the token endpoint gave which pair. */
  readonly #givenAt = new Map<number, number>();
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
  /** Why families have no good pair any more. */
  readonly #lostEarlier = new Map<number, [Loss | undefined, string]>();
  /** By the serial of the refresh token that was shown. */
  readonly #rotations = new Map<number, Rotation>();
  /** Families of the records that hold no tokens any more. */
  readonly #ended = new Map<string, readonly number[]>();
  readonly #tokens = new Map<string, readonly Token[]>();

  constructor(world: World) {
    this.#world = world;
  }

  violate(invariant: Violation['invariant'], detail: string): void {
    const { scheduler } = this.#world;
    const { lacks } = this.#world.options;
    if (lacks && ['one request', 'kept', 'saved', 'logged out', 'revoked'].includes(invariant)) {
      this.#world.note(this.#world.running, lacks, `${invariant}: ${detail}`);
      this.losses.push(lacks);
      return;
    }
    this.#world.note(this.#world.running, 'VIOLATION', `${invariant}: ${detail}`);
    this.violations.push({ invariant, detail, time: scheduler.now });
  }

  login(user: string): Login {
    const known = this.#logins.get(user);
    if (known) return known;
    const login: Login = {
      ...{ user, state: 'out', since: 0, families: new Set(), givenUp: new Set(), ids: new Set() },
      ...{ end: undefined, forgotten: new Map(), forked: new Map(), undone: undefined },
      wholeSince: Number.POSITIVE_INFINITY,
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
    if (login.state === 'in' && login.end) this.#count(login.end);
    login.state = state;
    login.since = this.#world.scheduler.now;
    // A login may be lost before its callback has ended.
    if (state !== 'in') login.end = undefined;
    if (state === 'unsure') login.undone = undefined;
    this.#world.note(undefined, `login of ${user}`, state);
    if (state === 'in') {
      // What earlier tries were given is good at the service, but nobody's login.
      for (const id of [...login.families].slice(0, -1)) login.givenUp.add(id);
      login.families = new Set([...login.families].slice(-1));
      // What this login was given may have been lost before its callback has ended.
      for (const id of login.families) {
        const lost = this.#lostEarlier.get(id);
        if (!lost) continue;
        // An earlier try may have ended with another reason.
        login.end = undefined;
        this.#checkLogin(login, () => lost);
      }
    }
    if (state !== 'out') return;
    this.hasLogouts = true;
    this.#checkLoggedOut(login);
  }

  /** The token endpoint has given a pair. */
  gave(pair: Pair, request: TokenRequest): void {
    const { scheduler } = this.#world;
    const { machine } = request;
    const login = this.login(pair.family.user);
    this.#givenAt.set(pair.serial, scheduler.now);
    // The code of an earlier try may come after another one has succeeded: what it is given is nobody's login.
    const isLate = pair.shown === undefined && login.state === 'in';
    if (pair.shown === undefined) (isLate ? login.givenUp : login.families).add(pair.family.id);
    if (!isLate) login.wholeSince = Number.POSITIVE_INFINITY;
    this.#onTheirWay.set(pair.serial, machine);
    const savedAt = Number.POSITIVE_INFINITY;
    const earlier = pair.shown === undefined ? undefined : this.#rotations.get(pair.shown);
    const whyAgain =
      pair.shown !== undefined && earlier ? this.#whyReused({ serial: pair.shown }, request)[0] : undefined;
    const seen = {
      isDamaged: false,
      lostAt: undefined,
      learnedAt: undefined,
      isReplaced: false,
      savedAt,
      refusedSaves: [],
    };
    const rotation: Rotation = { pair, request, time: scheduler.now, whyAgain, ...seen };
    if (earlier?.isDamaged && whyAgain) login.forked.set(pair.family.id, whyAgain);
    else login.forked.delete(pair.family.id);
    if (pair.shown !== undefined) this.#rotations.set(pair.shown, rotation);
    if (pair.family.previous !== undefined) scheduler.at(pair.family.previousUntil, () => this.#graceEnds(rotation));
    if (pair.shown !== undefined && this.#isOut(login) && scheduler.now - login.since > STALE_MS)
      this.violate('logged out', `${machine.name} refreshes the grant of ${login.user}, who has logged out`);
  }

  /** A process has the pair. */
  learned(pair: Pair, machine: Machine): void {
    this.#onTheirWay.delete(pair.serial);
    this.#know(pair.serial, machine);
    const rotation = pair.shown === undefined ? undefined : this.#rotations.get(pair.shown);
    if (rotation?.pair !== pair) return;
    rotation.learnedAt = this.#world.scheduler.now;
    const records = [...this.login(pair.family.user).ids].map((id) => this.#world.store.record(id));
    rotation.isReplaced = records.some((record) => this.#familiesOf(record).some((id) => id !== pair.family.id));
  }

  /** Its process has the pair without the access token. */
  learnedInPart(pair: Pair, machine: Machine): void {
    this.#givenAt.delete(pair.serial);
    this.learned(pair, machine);
  }

  /** No process will ever have the pair. @param waitedMs How long after its process has sent the request */
  lost(pair: Pair, how: LostAnswer | 'damaged', waitedMs: number): void {
    this.#onTheirWay.delete(pair.serial);
    this.unseen.add(pair.serial);
    const isKept = how === 'on its way' || (how === 'given up' && waitedMs >= TIMEOUT_MS);
    const detail = `the answer with ${pair.serial} was ${how === 'on its way' ? 'lost' : how}`;
    const rotation = pair.shown === undefined ? undefined : this.#rotations.get(pair.shown);
    if (how === 'damaged' && rotation) rotation.isDamaged = true;
    else if (rotation?.pair === pair && isKept) rotation.lostAt = this.#world.scheduler.now;
    if (rotation?.isDamaged && rotation.whyAgain)
      this.login(pair.family.user).forked.set(pair.family.id, rotation.whyAgain);
    const loss = how === 'damaged' ? 'answer damaged' : isKept ? 'answer lost' : undefined;
    this.#checkLife(pair.family, () => [loss, detail]);
  }

  /** A refresh token leaves its process for the service. Returns the lock that the process has. */
  shows(token: Token, machine: Machine, issuedAt: number): Lease | undefined {
    const { service, store, scheduler } = this.#world;
    const family = service.family(token.family);
    if (!family) return undefined;
    const { ids, user } = this.login(family.user);
    const lease = [...ids].map((id) => store.lease(id)).find((found) => found?.machine === machine);
    const isDropped = store.droppedLeases.some(({ id, time }) => ids.has(id) && time >= scheduler.now - 2 * LEASE_MS);
    const isForgotten = isDropped || this.hasFailedOver(ids, scheduler.now - 2 * LEASE_MS);
    if (!lease && issuedAt === scheduler.now && !isForgotten && !this.isFrozenSending({ machine, issuedAt, lease }))
      this.violate('one request', `${machine.name} shows a refresh token of ${user} without the lock`);
    const ageMs = issuedAt - (this.#givenAt.get(token.serial) ?? 0);
    if (ageMs < YOUNG_MS && service.honours(token) && this.#world.machines.every(({ isOnTime }) => isOnTime))
      this.violate('one request', `${machine.name} refreshes the grant of ${user} anew after ${ageMs} ms`);
    return lease;
  }

  /** A used refresh token was shown. */
  reused(family: Family, token: Token, request: TokenRequest): void {
    this.reuses += 1;
    this.#world.note(request.machine, 'shows a used refresh token', `${token.serial}`);
    if (!family.isRevoked) return;
    this.#checkLife(family, () => this.#whyReused(token, request));
  }

  /** A process has ended a grant at the service's revocation endpoint. */
  revoked(family: Family, machine: Machine): void {
    const login = this.login(family.user);
    const { store } = this.#world;
    const isStale = store.staleReads.some(({ id }) => login.ids.has(id));
    // A failover may bring a dropped record back, which the process has found gone.
    const loss =
      forgottenOf(login) ?? (this.#wasDropped(login) ? 'record dropped' : isStale ? 'stale read' : undefined);
    this.#checkLife(family, () => [loss, `${machine.name} has revoked the grant`]);
  }

  /** Whether a process that had this pair has died since then. */
  hasDied(serial: number, since: number): boolean {
    return [...(this.#knowers.get(serial) ?? [])].some(({ diedAt, isAlive }) => !isAlive && diedAt >= since);
  }

  /** Whether the store had another login of the user when the process of this pair got it. */
  isAfterLogin(serial: number): boolean {
    return [...this.#rotations.values()].some(({ pair, isReplaced }) => pair.serial === serial && isReplaced);
  }

  /** The store has a record in place of another. */
  stored({ id, before, after, op, machine }: StoreWrite): void {
    const { scheduler, service } = this.#world;
    const tokens = this.#tokensOf(after);
    this.#world.note(machine, `the store has`, `${id} ${op} ${tokens.map(({ serial }) => serial).join()}`);
    // What is left of a grant that was refused has the place of the grant.
    if (op === 'update' && after !== undefined && tokens.length === 0) this.#ended.set(after, this.#familiesOf(before));
    const present = this.#familiesOf(after);
    const forgotten = op === 'failover' ? 'failover' : op === 'eviction' ? 'record dropped' : undefined;
    for (const rotation of this.#rotations.values())
      if (tokens.some(({ kind, serial }) => kind === 'refresh' && serial === rotation.pair.serial))
        rotation.savedAt = Math.min(rotation.savedAt, scheduler.now);
    for (const familyId of new Set([...present, ...this.#familiesOf(before)])) {
      const family = service.family(familyId);
      if (!family || family.isOfApplication) continue;
      const login = this.login(family.user);
      login.ids.add(id);
      if (present.includes(familyId)) login.forgotten.delete(familyId);
      else if (forgotten) login.forgotten.set(familyId, forgotten);
      if (op === 'set' && tokens.some((token) => token.family === familyId)) {
        // The late save of a try that was given up has replaced the login: the store decides which one goes on.
        if (login.givenUp.has(familyId)) login.families.clear();
        login.families.add(familyId);
      }
      if (forgotten) this.#checkLife(family, () => [forgotten, 'the store forgot the pair']);
      else this.#checkLife(family, () => [undefined, `${machine?.name}'s ${op} removed the last trace of the pair`]);
      if (tokens.length > 0 && login.state !== 'in' && op === 'failover') login.undone = 'logout forgotten';
      // Also during the logout: what it deletes is the grant that it has read.
      if (tokens.length > 0 && login.state !== 'in' && op === 'set' && login.givenUp.has(familyId))
        login.undone = 'login came late';
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

  /**
   * A process sends a command to the store. Returns what is called once the command is answered, with the time at which the
   * store performed it, or has failed.
   */
  storeAsked(machine: Machine, op: string): (performedAt?: number) => void {
    const asked = { machine, since: this.#world.scheduler.now };
    this.#storeAsked.add(asked);
    return (performedAt = asked.since) => {
      this.#storeAsked.delete(asked);
      const { now } = this.#world.scheduler;
      if (now - asked.since >= DOWN_MS) this.#lateAnswers.push({ ...asked, at: now });
      if (op === 'take' || op === 'check') this.#lookedAt.set(machine, performedAt);
    };
  }

  /** The store has failed a process. */
  storeFailed(machine: Machine): void {
    this.#storeFailedAt.set(machine, this.#world.scheduler.now);
  }

  /** The store has refused a save, or not answered in time. */
  saveFailed(machine: Machine, id: string): void {
    this.storeFailed(machine);
    for (const { pair, request, refusedSaves } of this.#rotations.values())
      if (request.machine === machine && this.login(pair.family.user).ids.has(id))
        refusedSaves.push(this.#world.scheduler.now);
  }

  failedOver(): void {
    for (const login of this.#logins.values()) {
      this.#checkLogin(login, () => ['failover', 'the store forgot the pair']);
      const { families, forked } = login;
      if (this.#wasDropped(login)) for (const id of families) forked.set(id, 'record dropped');
    }
  }

  crashed(machine: Machine): void {
    for (const [serial, receiver] of this.#onTheirWay) if (receiver === machine) this.#onTheirWay.delete(serial);
    for (const login of this.#logins.values()) this.#checkLogin(login, () => this.#whyUnsaved(login, machine));
  }

  /** A request of `user`, begun at `begun`, was answered by the API. */
  authorized(user: string, machine: Machine, begun: number): void {
    const login = this.login(user);
    if (!this.#isOut(login) || begun - login.since < STALE_MS || this.#world.isCut(machine, 'store')) return;
    // While its store fails, or does not answer for a second, a process goes on with the grants that it has seen last. A
    // read that is too late, because the process stood still, is such a failure.
    if ((this.#storeFailedAt.get(machine) ?? -Infinity) >= begun - DOWN_MS) return;
    // The store may have answered since the request has begun.
    const wasDown = this.#lateAnswers.some(
      (late) => late.machine === machine && late.at >= begun && late.since <= begun - DOWN_MS,
    );
    if (wasDown) return;
    const { now } = this.#world.scheduler;
    for (const asked of this.#storeAsked) if (asked.machine === machine && now - asked.since >= DOWN_MS) return;
    this.violate('logged out', `${machine.name} goes on for ${user}, who has logged out`);
  }

  /** A request of `user`, begun at `begun`, was told that nobody is logged in. */
  unauthorized(user: string, machine: Machine, begun: number): void {
    const { state, since, wholeSince, families, ids } = this.login(user);
    if (state !== 'in') return;
    this.hasRefusals = true;
    if (since > begun || wholeSince > begun) return;
    if ([...families].every((id) => this.#world.service.family(id)?.isRevoked)) return;
    if (this.#hasReadStale(ids, machine, begun)) return;
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

  /** Whether all that is left of a login is an access token that has ended, which a process may not know by its clock. */
  isEndUnseen({ families, ids }: Login): boolean {
    const { service, store, machines } = this.#world;
    const left = [...ids].flatMap((id) => this.#tokensOf(store.record(id)));
    const isEnded = ({ kind, family, serial }: Token) =>
      kind === 'access' && service.bearer(`at-${family}-${serial}`) === undefined;
    const isDamaged = [...families].every((id) => this.#lostEarlier.get(id)?.[0] === 'answer damaged');
    return isDamaged && left.length > 0 && left.every(isEnded) && machines.some(({ isOnTime }) => !isOnTime);
  }

  #isHeld(login: Login, family: Family): boolean {
    if (this.isSaved(login)) return true;
    const serials = [family.current, family.previous ?? family.current];
    return serials.some((serial) => {
      if (!this.#world.service.honours({ kind: 'refresh', family: family.id, serial })) return false;
      if (this.#onTheirWay.has(serial)) return true;
      return [...(this.#knowers.get(serial) ?? [])].some(({ isAlive }) => isAlive);
    });
  }

  /** Whether the user has logged out, and neither the store nor a late write can have undone it. */
  #isOut({ state, undone }: Login): boolean {
    return state === 'out' && undone === undefined;
  }

  /** Counts a login that has ended by itself: as a loss, or as a violation if it could have been kept. */
  #count({ loss, detail }: { readonly loss: Loss | undefined; readonly detail: string }): void {
    if (loss) this.losses.push(loss);
    else this.violate('kept', detail);
  }

  /** A login was found to have ended: every process says so. */
  isOff(login: Login): void {
    const { end, user } = login;
    const forgotten = unkeepable(login);
    if (end) this.#count(end);
    else if (forgotten) this.losses.push(forgotten);
    else this.violate('kept', `the grant of ${user} was given up while it was good`);
  }

  #know(serial: number, machine: Machine): void {
    const knowers = this.#knowers.get(serial);
    if (knowers) knowers.add(machine);
    else this.#knowers.set(serial, new Set([machine]));
  }

  /** Names why a family of a login may have lost its last good pair, also while the login still has another family. */
  #checkLife(family: Family, why: () => [Loss | undefined, string]): void {
    const login = this.login(family.user);
    if (this.#isHeld(login, family)) this.#lostEarlier.delete(family.id);
    else if (!this.#lostEarlier.has(family.id)) this.#lostEarlier.set(family.id, why());
    // What is removed, or comes late, may have been of no use before: the first reason counts.
    this.#checkLogin(login, () => this.#lostEarlier.get(family.id) ?? why());
  }

  #checkLogin(login: Login, why: () => [Loss | undefined, string]): void {
    const isLiving = this.isLiving(login);
    if (isLiving) login.end = undefined;
    if (isLiving || login.end || login.state === 'out' || login.families.size === 0) return;
    const [loss, detail] = why();
    login.end = { loss, detail, time: this.#world.scheduler.now };
    this.#world.note(undefined, `the login of ${login.user} has ended`, `${loss ?? 'WITHOUT NEED'}: ${detail}`);
  }

  /** Names the reason why the store has no good pair of a login as the last process that had one dies. */
  #whyUnsaved(login: Login, machine: Machine): [Loss | undefined, string] {
    const { scheduler } = this.#world;
    const died = `${machine.name} died`;
    const forgotten = unkeepable(login);
    if (forgotten) return [forgotten, died];
    const isCurrent = ({ pair }: Rotation) => login.families.has(pair.family.id) && pair.serial === pair.family.current;
    const rotation = [...this.#rotations.values()].find(isCurrent);
    if (rotation?.learnedAt === undefined) return ['crash', died];
    const { pair, request, learnedAt, savedAt, refusedSaves } = rotation;
    // It may have died before: while a login is tried again, the pair of the earlier try counts as one of its.
    const { machine: holder } = request;
    if (savedAt <= scheduler.now) return [this.hasFailedOver(login.ids, savedAt) ? 'failover' : undefined, died];
    const ranFor = (since: number) => holder.runningBetween(since, Math.min(holder.diedAt, scheduler.now));
    if (ranFor(learnedAt) < SAVE_MS || ranFor(refusedSaves.at(-1) ?? learnedAt) < SAVE_AGAIN_MS) return ['crash', died];
    return [undefined, `${died}, and ${holder.name} had not tried to save ${pair.serial}`];
  }

  /** The service no longer takes the refresh token before. */
  #graceEnds(rotation: Rotation): void {
    const { family } = rotation.pair;
    // Another rotation has its own grace.
    if (family.previousUntil > this.#world.scheduler.now) return;
    const login = this.login(family.user);
    if (!this.isSaved(login)) {
      login.wholeSince = Number.POSITIVE_INFINITY;
      // Whoever has the newest pair found an older one saved, and has given it up.
      if (rotation.whyAgain) login.forked.set(family.id, rotation.whyAgain);
    }
    this.#checkLife(family, () => this.#whyGraceOver(login, rotation));
  }

  /**
   * Names the reason why nobody has got the pair of a rotation, or has asked for it again, until the grace was over. If nothing
   * went wrong but that its answer was lost, its process had to.
   */
  #whyGraceOver(
    login: Login,
    { pair, request, time, whyAgain, isDamaged, lostAt }: Rotation,
  ): [Loss | undefined, string] {
    const { troubles } = this.#world;
    const { machine } = request;
    const what = `the grace after ${pair.serial} is over`;
    const known = unkeepable(login) ?? whyAgain;
    if (known) return [known, what];
    const others = [...troubles, ...machine.settings].filter((at) => at >= time - TROUBLED_MS);
    if (isDamaged || lostAt === undefined || others.length > 1) return ['grace over', what];
    return [undefined, `${what}, and ${machine.name} has not asked again`];
  }

  /**
   * Names the reason why a process has shown a refresh token that was used already.
   *
   * The lock was given back with the pair unsaved, or its lease ended so, or a request was on its way outside of the lock.
   * Each is a reason only as far as its process could do nothing about it.
   */
  #whyReused(token: Pick<Token, 'serial'>, request: TokenRequest): [Loss | undefined, string] {
    const rotation = this.#rotations.get(token.serial);
    const what = `${request.machine.name} showed the used refresh token ${token.serial}`;
    if (this.isFrozenSending(request) || (rotation && this.isFrozenSending(rotation.request)))
      return ['frozen while sending', what];
    if (request.delivery === 'again' || rotation?.request.delivery === 'again') return ['request came twice', what];
    // A process that stands still gives up nothing.
    const isOverdue = this.#world.scheduler.now - request.issuedAt >= TIMEOUT_MS;
    if (request.delivery === 'late' || isOverdue) return ['request came late', what];
    if (!rotation) return [undefined, `${what}, which nobody has rotated`];
    const { pair, time, savedAt, refusedSaves } = rotation;
    const { machine: holder, lease } = rotation.request;
    const whose = `${what} of ${holder.name}`;
    if (this.hasFailedOver(this.login(pair.family.user).ids, time - LEASE_MS)) return ['failover', whose];
    const since = request.lease?.since ?? time - LEASE_MS;
    const { ids } = this.login(pair.family.user);
    const { droppedLeases } = this.#world.store;
    if (droppedLeases.some((dropped) => ids.has(dropped.id) && dropped.time >= time - LEASE_MS))
      return ['lease dropped', whose];
    if (this.#hasReadStale(ids, request.machine, since)) return ['stale read', whose];
    if (!request.lease) return [undefined, `${whose}, without the lock`];
    if (!lease) return [undefined, `${whose}, which had no lock`];
    if (savedAt < request.lease.since) return [undefined, `${whose}, though the pair was saved`];
    const released = this.#world.store.releases.get(lease);
    const refused = refusedSaves.filter((at) => at <= (released ?? lease.until));
    if (released !== undefined) {
      const isAtLast = released - time >= SAVES_MS || released >= lease.until - LAST_SAVE_MS;
      if (refused.length >= 3 && isAtLast) return ['saves refused', whose];
      return [undefined, `${whose}, which gave its lock back with the pair unsaved`];
    }
    if (holder.runningBetween(time, lease.until) < SAVES_MS) return ['holder frozen', whose];
    if (refused.length > 0) return ['holder cut off', whose];
    return [undefined, `${whose}, whose lease was over`];
  }

  /**
   * Whether the process stood still after its last look at the lock, and had lost the lock when it went on. It goes by the wall
   * clock, which shows a suspension, unless that was set in the same refresh: its third lock in a row goes by the other one.
   */
  isFrozenSending({ machine, issuedAt, lease }: Pick<TokenRequest, 'machine' | 'issuedAt' | 'lease'>): boolean {
    if (lease) return false;
    const lookedAt = this.#lookedAt.get(machine) ?? Number.POSITIVE_INFINITY;
    return machine.freezes.some(({ from, until, clocks }) => {
      const isSet = machine.settings.some((at) => at >= from - LEASE_MS && at <= issuedAt);
      const isHidden = clocks === 'pause' || (clocks === 'suspend' && isSet && this.#hasThirdLock(machine, from));
      return from <= issuedAt && (until > issuedAt || (isHidden && until > lookedAt));
    });
  }

  /** Whether the process has taken the lock of a grant for the third time by then, within the length of a lease in which it ran. */
  #hasThirdLock(machine: Machine, at: number): boolean {
    const taken = this.#world.store.takenLeases.filter(
      (lease) => lease.machine === machine && lease.since <= at && machine.runningBetween(lease.since, at) <= LEASE_MS,
    );
    return taken.some(({ id }) => taken.filter((other) => other.id === id).length >= 3);
  }

  /** Whether the store has forgotten something about a login since then: its record, or what became of its lease. */
  hasFailedOver(logins: ReadonlySet<string>, since: number): boolean {
    return this.#world.store.failovers.some(({ time, ids }) => time >= since && [...logins].some((id) => ids.has(id)));
  }

  /** Whether the store has answered a read of the process with an older record since then. */
  #hasReadStale(ids: ReadonlySet<string>, machine: Machine, since: number): boolean {
    const { staleReads } = this.#world.store;
    return staleReads.some((read) => read.machine === machine && ids.has(read.id) && read.time >= since);
  }

  /** Whether the store has just dropped the login's record. */
  #wasDropped({ ids }: Login): boolean {
    const { store, scheduler } = this.#world;
    return store.evictedRecords.some(({ id, time }) => ids.has(id) && time >= scheduler.now - STALE_MS);
  }

  #checkLoggedOut(login: Login): void {
    if (this.#isOut(login) && this.isSaved(login))
      this.violate('logged out', `the store still has the grant of ${login.user}`);
  }

  /** Returns the families whose grant a record holds, or held before it was refused. */
  #familiesOf(record: string | undefined): readonly number[] {
    if (record === undefined) return [];
    return this.#ended.get(record) ?? [...new Set(this.#tokensOf(record).map(({ family }) => family))];
  }

  #tokensOf(record: string | undefined): readonly Token[] {
    if (record === undefined) return [];
    const known = this.#tokens.get(record);
    if (known) return known;
    const { sealed } = JSON.parse(record) as { readonly sealed: string };
    const tokens = tokensIn(textOf(sealed));
    this.#tokens.set(record, tokens);
    return tokens;
  }
}

/** Returns how the store has lost all that it had of a login. */
export function forgottenOf({ families, forgotten }: Login): Loss | undefined {
  return lossOfAll(families, forgotten);
}

/** Returns why no process could keep a login: the store has lost all that it had, or its newest pair is nobody's. */
function unkeepable(login: Login): Loss | undefined {
  return forgottenOf(login) ?? lossOfAll(login.families, login.forked);
}

/** Returns why all of these families are lost; `undefined` if one is not. */
function lossOfAll(families: ReadonlySet<number>, losses: ReadonlyMap<number, Loss>): Loss | undefined {
  const all = [...families].map((id) => losses.get(id));
  return all.every((loss) => loss !== undefined) ? all[0] : undefined;
}
