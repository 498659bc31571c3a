import { Agent, Dispatcher } from 'undici';

/** A way into the network that can be cut for some paths, where connections then fail as Node tells it. */
export class SplitNetwork extends Dispatcher {
  /** Connections that failed. */
  failures = 0;
  readonly #whole = new Agent();
  #cut: { readonly path: string; readonly agent: Agent } | undefined;

  /** From now on no connection comes about for paths that begin so. */
  cut(path: string, code: string): void {
    const agent = new Agent({
      connect: (_options, callback) => {
        this.failures += 1;
        callback(Object.assign(new Error(`The network fails: ${code}`), { code }), null);
      },
    });
    this.#cut = { path, agent };
  }

  mend(): void {
    this.#cut = undefined;
  }

  override dispatch(options: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler): boolean {
    const isCut = this.#cut !== undefined && options.path.startsWith(this.#cut.path);
    return (isCut && this.#cut ? this.#cut.agent : this.#whole).dispatch(options, handler);
  }

  override async close(): Promise<void> {
    await this.#whole.destroy();
  }
}
