import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import type { Limits } from './api.js';
import { EmulatorError, integer, isRecord, refuse } from './checks.js';
import type { Codes } from './codes.js';
import type { Consents } from './consents.js';
import type { Application, Applications, EmulatorUser, Users } from './directory.js';
import type { Faults } from './faults.js';
import type { Grants } from './grants.js';
import type { Installation, Installations, Uninstallation } from './installations.js';
import type { RequestLog } from './server.js';
import type { Clock, Secrets } from './sources.js';

/** The state of the service that can be controlled. */
export interface ControlledState {
  readonly applications: Applications;
  readonly users: Users;
  readonly codes: Codes;
  readonly consents: Consents;
  readonly grants: Grants;
  readonly installations: Installations;
  readonly faults: Faults;
  readonly limits: Limits;
  readonly clock: Clock;
  readonly requests: RequestLog;
}

/** The end of the year 9999: no later time has a form in dates and tokens. */
const lastMs = Date.UTC(9999, 11, 31);

/** Changes the service from outside. The members of `Emulator` and the control requests over HTTP both use it. */
export class Controls {
  readonly state: ControlledState;
  /** Returns the base address of the API of an organization, once the service listens. */
  baseUrlOf: (domain: string | undefined) => string = () => '';
  /** Returns the origin of a tenant, or of the service itself, once the service listens. */
  originOf: (tenant: string | undefined) => string = () => '';
  /** Returns the tenants, once the service listens. */
  tenants: () => readonly { readonly tenant: string; readonly options: unknown }[] = () => [];
  readonly #firstUsers: readonly EmulatorUser[];
  readonly #firstLimits: Limits;
  readonly #listeners = new Set<() => void>();

  constructor(state: ControlledState) {
    this.state = state;
    this.#firstUsers = [...state.users.byId.values()];
    this.#firstLimits = { ...state.limits };
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
    const { length } = this.state.faults.queue;
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
    this.state.consents.forget(id);
    return this.#change(() => this.state.grants.endAll(id));
  }

  /** Installs an application, and returns the Installed event. */
  install(options: unknown): Installation {
    return this.#change(() => this.state.installations.install(options, this.baseUrlOf));
  }

  /** Removes an installation, ends the grants of its application, and returns the Uninstall event. */
  uninstall(options: unknown): Uninstallation {
    return this.#change(() => {
      const { event, userId } = this.state.installations.uninstall(options);
      this.state.grants.endOf(event.clientId, userId);
      return event;
    });
  }

  /** Changes how many requests of one account the API takes at once; `undefined` and `null` for any number. */
  limit(concurrency: unknown): void {
    const most =
      concurrency === undefined || concurrency === null ? undefined : integer('concurrency', concurrency, 1, 1_000_000);
    this.#change(() => (this.state.limits.concurrency = most));
  }

  /** Moves the time of the service forward. */
  advance(seconds: unknown): void {
    const { clock } = this.state;
    const now = typeof seconds === 'number' ? clock.now() + seconds * 1000 : Number.NaN;
    if (typeof seconds !== 'number' || !(now >= 0 && now <= lastMs)) {
      refuse('advance(): seconds', 'a number that leads to a time between 1970 and 9999', seconds);
    }
    this.#change(() => (clock.offsetMs += seconds * 1000));
  }

  /** Removes the recorded requests. */
  clearRequests(): void {
    this.#change(() => this.state.requests.clear());
  }

  /**
   * Returns to the state after the start: no faults, recorded requests, codes and grants, the first users and limit, the real time.
   * Applications stay registered, because an application under test is often registered once for several tests.
   */
  reset(): void {
    const { faults, requests, codes, consents, grants, installations, limits, users, clock } = this.state;
    this.#change(() => {
      Object.assign(limits, this.#firstLimits);
      consents.forget();
      faults.clear();
      faults.endDelays();
      requests.clear();
      codes.restore([]);
      grants.endAll();
      installations.clear();
      users.replaceAll(this.#firstUsers);
      clock.offsetMs = 0;
    });
  }

  /** Calls the listener after each change. Returns a function that removes it. */
  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** Reports a change made elsewhere, such as the outcome of a request. */
  changed(): void {
    for (const listener of this.#listeners) listener();
  }

  #change<T>(work: () => T): T {
    const result = work();
    this.changed();
    return result;
  }
}

/** Changes within this time are saved together. */
const saveDelayMs = 200;

/** The state that survives a restart. It holds the key that signs tokens, so the file is readable by its owner only. */
interface SavedState {
  readonly version: 1;
  readonly secrets: ReturnType<Secrets['snapshot']>;
  readonly offsetMs: number;
  readonly applications: readonly unknown[];
  readonly users: readonly unknown[];
  readonly codes: ReturnType<Controls['state']['codes']['snapshot']>;
  readonly grants: ReturnType<Controls['state']['grants']['snapshot']>;
  readonly installations?: ReturnType<Controls['state']['installations']['snapshot']>;
}

/** A file that keeps the state of the service across restarts. */
export class StateFile {
  readonly #path: string;
  readonly #secrets: Secrets;
  readonly #controls: Controls;
  #timer: NodeJS.Timeout | undefined;
  #saved = '';

  /**
   * Restores the state from the file, if there is one, and saves each change from now on.
   *
   * @throws {EmulatorError} `ERR_EMULATOR_OPTION` if the file exists but cannot be read, or cannot be written.
   */
  constructor(path: string, secrets: Secrets, controls: Controls) {
    this.#path = path;
    this.#secrets = secrets;
    this.#controls = controls;
    this.#restore();
    this.#save();
    controls.onChange(() => {
      this.#timer ??= setTimeout(() => this.flush(), saveDelayMs).unref();
    });
  }

  /** Saves outstanding changes now. A failure becomes a process warning: the service keeps running. */
  flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    try {
      this.#save();
    } catch (error) {
      process.emitWarning(error instanceof Error ? error.message : String(error), 'EmulatorWarning');
    }
  }

  #restore(): void {
    let text: string;
    try {
      text = readFileSync(this.#path, 'utf8');
    } catch (cause) {
      if (cause instanceof Error && 'code' in cause && cause.code === 'ENOENT') return;
      throw unusable(this.#path, cause instanceof Error ? cause.message : 'it cannot be read');
    }
    try {
      const saved: SavedState = JSON.parse(text);
      if (!isRecord(saved) || saved.version !== 1) throw new TypeError('another format');
      const { applications, users, codes, grants, installations, clock } = this.#controls.state;
      installations.restore(saved.installations ?? []);
      for (const application of saved.applications) applications.restore(application);
      for (const user of saved.users) users.put(user, 'state');
      codes.restore(saved.codes);
      grants.restore(saved.grants);
      clock.offsetMs = saved.offsetMs;
      this.#secrets.restore(saved.secrets);
    } catch {
      // The message of JSON.parse would quote the file, which holds secrets.
      throw unusable(this.#path, 'it is not a state file of this version. Delete it to start over');
    }
  }

  #save(): void {
    const { applications, users, codes, grants, installations, clock } = this.#controls.state;
    const state: SavedState = {
      version: 1,
      secrets: this.#secrets.snapshot(),
      offsetMs: clock.offsetMs,
      applications: [...applications.byId.values()],
      users: [...users.byId.values()],
      codes: codes.snapshot(),
      grants: grants.snapshot(),
      installations: installations.snapshot(),
    };
    const text = JSON.stringify(state);
    if (text === this.#saved) return;
    try {
      // Written to a temporary file and renamed, so that the file is never half written.
      writeFileSync(`${this.#path}.tmp`, text, { mode: 0o600 });
      renameSync(`${this.#path}.tmp`, this.#path);
      this.#saved = text;
    } catch (cause) {
      throw unusable(this.#path, cause instanceof Error ? cause.message : 'it cannot be written');
    }
  }
}

function unusable(path: string, reason: string): EmulatorError {
  return new EmulatorError(`state: the file ${path} cannot be used: ${reason}.`, {
    code: 'ERR_EMULATOR_OPTION',
    option: 'state',
  });
}
