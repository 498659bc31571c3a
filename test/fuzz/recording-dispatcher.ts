import { Agent, Dispatcher } from 'undici';

/** A way into the network that notes which origins are contacted, and lets requests to known ones pass only. */
export class RecordingDispatcher extends Dispatcher {
  /** Origins that were to be contacted, each once. */
  readonly origins = new Set<string>();
  /** Requests to any of them. */
  requests = 0;
  readonly #allowed: ReadonlySet<string>;
  readonly #agent = new Agent();

  constructor(allowed: readonly string[]) {
    super();
    this.#allowed = new Set(allowed);
  }

  override dispatch(options: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler): boolean {
    const origin = String(options.origin);
    this.origins.add(origin);
    this.requests += 1;
    if (!this.#allowed.has(origin)) throw new Error('an origin that is not configured');
    return this.#agent.dispatch(options, handler);
  }

  override async close(): Promise<void> {
    await this.#agent.close();
  }
}
