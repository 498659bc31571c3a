import { Agent, buildConnector } from 'undici';

/** A way into the network that can be cut. For the option `dispatcher`; each request makes a connection of its own. */
export class Network {
  /** Connections that were tried, those that failed among them. */
  attempts = 0;
  readonly #faults: Error[] = [];
  readonly #connect = buildConnector({});
  readonly dispatcher: Agent = new Agent({
    // No connection is kept: a kept one would not notice the cut.
    pipelining: 0,
    connect: (options, callback) => {
      this.attempts += 1;
      const fault = this.#faults.shift();
      if (fault) callback(fault, null);
      else this.#connect(options, callback);
    },
  });

  /** The next connections fail. */
  cut(code: string, times: number): void {
    for (let time = 0; time < times; time++) {
      this.#faults.push(Object.assign(new Error(`The network fails: ${code}`), { code }));
    }
  }
}
