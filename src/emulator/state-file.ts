import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { EmulatorError, isRecord } from './checks.js';
import type { Controls } from './controls.js';
import type { Secrets } from './secrets.js';

/** Delay between a change and its save. Changes in between are saved together. */
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

  /** Saves outstanding changes now. A failure is a warning of the process: the service itself goes on. */
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
      const { applications, users, codes, grants, clock } = this.#controls.state;
      for (const application of saved.applications) applications.restore(application);
      for (const user of saved.users) users.put(user, 'state');
      codes.restore(saved.codes);
      grants.restore(saved.grants);
      clock.reset(saved.offsetMs);
      this.#secrets.restore(saved.secrets);
    } catch {
      // The message of JSON.parse would quote the file, which holds secrets.
      throw unusable(this.#path, 'it is not a state file of this version. Delete it to start anew');
    }
  }

  #save(): void {
    const { applications, users, codes, grants, clock } = this.#controls.state;
    const state: SavedState = {
      version: 1,
      secrets: this.#secrets.snapshot(),
      offsetMs: clock.offsetMs,
      applications: [...applications.all()],
      users: [...users.all()],
      codes: codes.snapshot(),
      grants: grants.snapshot(),
    };
    const text = JSON.stringify(state);
    if (text === this.#saved) return;
    try {
      // Written beside and renamed, so that the file is never half written.
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
