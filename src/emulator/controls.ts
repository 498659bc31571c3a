import type { Application, Applications } from './applications.js';
import { refuse } from './checks.js';
import type { Clock } from './clock.js';
import type { Codes } from './codes.js';
import type { Faults } from './faults.js';
import type { Grants } from './grants.js';
import type { RequestLog } from './request-log.js';
import type { EmulatorUser, Users } from './users.js';

/** The state of the service that can be controlled. */
export interface ControlledState {
  readonly applications: Applications;
  readonly users: Users;
  readonly codes: Codes;
  readonly grants: Grants;
  readonly faults: Faults;
  readonly clock: Clock;
  readonly requests: RequestLog;
}

/** Changes the service from outside. The members of `Emulator` and the control requests over HTTP both use it. */
export class Controls {
  readonly state: ControlledState;
  readonly #firstUsers: readonly EmulatorUser[];
  readonly #listeners = new Set<() => void>();

  constructor(state: ControlledState) {
    this.state = state;
    this.#firstUsers = [...state.users.all()];
  }

  /** Registers an application, or further redirect URLs of a known one, and returns it. */
  register(registration: unknown): Application {
    return this.#change(() => this.state.applications.register(registration));
  }

  /** Adds or replaces an account. */
  addUser(user: unknown): void {
    this.#change(() => this.state.users.put(user));
  }

  /** Queues a fault and returns its id. */
  fail(endpoint: unknown, fault: unknown): number {
    return this.#change(() => this.state.faults.add(endpoint, fault));
  }

  /** Removes a fault. Returns false if there is no such fault. */
  removeFault(id: number): boolean {
    return this.#change(() => this.state.faults.remove(id));
  }

  /** Removes all faults and returns their number. */
  removeFaults(): number {
    const { length } = this.state.faults.list();
    this.#change(() => this.state.faults.clear());
    return length;
  }

  /** Refuses all access tokens issued so far. */
  expireAccessTokens(): void {
    this.#change(() => this.state.grants.expireAccessTokens());
  }

  /** Ends all grants of a user and returns their number. */
  revoke(userId: unknown): number {
    const { id } = this.state.users.require(typeof userId === 'string' ? userId : undefined);
    return this.#change(() => this.state.grants.endAllOf(id));
  }

  /** Moves the time of the service forward. */
  advance(seconds: unknown): void {
    if (typeof seconds !== 'number' || !Number.isFinite(seconds)) refuse('advance(): seconds', 'a number', seconds);
    this.#change(() => this.state.clock.advance(seconds));
  }

  /** Removes the recorded requests. */
  clearRequests(): void {
    this.#change(() => this.state.requests.clear());
  }

  /**
   * Returns to the state after the start: no faults, recorded requests, codes and grants, the first users, the real time. Applications
   * stay registered, because an application under test is often registered once for several tests.
   */
  reset(): void {
    const { faults, requests, codes, grants, users, clock } = this.state;
    this.#change(() => {
      faults.clear();
      faults.endDelays();
      requests.clear();
      codes.clear();
      grants.clear();
      users.replaceAll(this.#firstUsers);
      clock.reset();
    });
  }

  /** Calls the listener after each change. Returns a function that removes it. */
  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** Reports a change that did not come from here: a request has its outcome. */
  changed(): void {
    for (const listener of this.#listeners) listener();
  }

  #change<T>(work: () => T): T {
    const result = work();
    this.changed();
    return result;
  }
}
