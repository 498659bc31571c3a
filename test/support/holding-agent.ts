import { Agent, type Dispatcher } from 'undici';
import { gate } from './gate.js';

/** Holds requests to some paths back once it is told to. For the option `dispatcher`. */
export class HoldingAgent extends Agent {
  /** Opens when the first request is held. */
  readonly asked: ReturnType<typeof gate> = gate();
  readonly #held = new Map<unknown, Promise<void>>();

  /** Holds the requests to a path. Returns the function that lets them go. */
  hold(path = '/oauth/token'): () => void {
    const { opened, open } = gate();
    this.#held.set(path, opened);
    return open;
  }

  override dispatch(options: Agent.DispatchOptions, handler: Dispatcher.DispatchHandler): boolean {
    const held = this.#held.get(options.path);
    if (!held) return super.dispatch(options, handler);
    this.asked.open();
    void held.then(() => super.dispatch(options, handler));
    return true;
  }
}
