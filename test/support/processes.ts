import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

/** Where the processes keep their grants: a kind of store with its address, and seconds of its lease. */
export type SharedStore = {
  readonly lease?: number;
  /** Of Redis: the package of the client, and how many replicas confirm a write. */
  readonly client?: 'redis' | 'ioredis';
  readonly replicas?: number;
} & (
  | { readonly redis: string }
  /** A store of its own, in which user 1 has this token. */
  | { readonly memory: { readonly accessToken: string } }
  | { readonly sentinel: { readonly ports: readonly number[]; readonly name: string } }
  | { readonly cluster: { readonly ports: readonly number[] } }
  | { readonly postgres: string }
  | { readonly mysql: string }
  | { readonly sqlite: string }
);

/** The answer of a process to one request: the access token it used, or why it has none. */
export interface Answer {
  readonly status: number;
  readonly text: string;
}

const SCRIPT = fileURLToPath(new URL('./grant-worker.mjs', import.meta.url));

/** Processes that a test has given back: starting another one takes longer than most tests. */
const idle: Worker[] = [];

/** A process of an application that runs in several processes. */
export class Worker {
  readonly #child: ChildProcess;
  readonly #url: string;
  readonly #isOfThisVersion: boolean;
  #messages = 0;

  /**
   * Starts a process, or begins anew in one that was given back; it is ready for requests.
   *
   * @param options Of the strategy, as JSON: addresses, credentials and the wire.
   * @param script That of another version of the package; this one's by default.
   */
  static async start(store: SharedStore, options: object, script: string = SCRIPT): Promise<Worker> {
    const again = script === SCRIPT ? idle.pop() : undefined;
    if (again) {
      await again.#tell({ again: { store, options } });
      return again;
    }
    const child = fork(script, [JSON.stringify({ store, options })]);
    const ended = new AbortController();
    child.once('exit', () => ended.abort(new Error('The process has ended before it was ready.')));
    const [{ port }] = (await once(child, 'message', { signal: ended.signal })) as [{ port: number }];
    return new Worker(child, `http://127.0.0.1:${port}/`, script === SCRIPT);
  }

  private constructor(child: ChildProcess, url: string, isOfThisVersion: boolean) {
    this.#child = child;
    this.#url = url;
    this.#isOfThisVersion = isOfThisVersion;
    child.setMaxListeners(0);
  }

  /** The value of the header x-process of its requests to the service. */
  get id(): string {
    return String(this.#child.pid);
  }

  /** Whether the process has not ended. */
  get isAlive(): boolean {
    return this.#child.exitCode === null && this.#child.signalCode === null;
  }

  /** A request of this user. */
  async ask(user: string): Promise<Answer> {
    const response = await fetch(this.#url, { headers: { 'x-user': user } });
    return { status: response.status, text: await response.text() };
  }

  /** Lets so many seconds pass for the process. */
  advance(seconds: number): Promise<void> {
    return this.#tell({ advance: seconds });
  }

  /** `strategy.deleteGrant(user)`. */
  deleteGrant(user: string): Promise<void> {
    return this.#tell({ remove: user });
  }

  /** `strategy.close()`, then the end. */
  async close(): Promise<void> {
    await this.#tell({ close: true });
    await this.kill();
  }

  /** SIGSTOP or SIGCONT. */
  signal(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  /** Ends it without any warning. May be called more than once. */
  async kill(): Promise<void> {
    if (!this.isAlive) return;
    const ended = once(this.#child, 'exit');
    this.#child.kill('SIGKILL');
    await ended;
  }

  /** Ends what the process does, in good order, and gives it back for another test. May be called of one that has ended. */
  async release(): Promise<void> {
    if (!this.isAlive) return;
    if (!this.#isOfThisVersion) return this.kill();
    await this.#tell({ isOver: true });
    idle.push(this);
  }

  async #tell(message: object): Promise<void> {
    const id = ++this.#messages;
    const answered = new Promise<void>((resolve) => {
      const listener = (answer: { id?: number }) => {
        if (answer.id !== id) return;
        this.#child.off('message', listener);
        resolve();
      };
      this.#child.on('message', listener);
    });
    this.#child.send({ id, ...message });
    await answered;
  }
}
