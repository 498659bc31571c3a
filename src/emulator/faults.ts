import { validateHeaderName, validateHeaderValue } from 'node:http';
// Not the global timers: a test that fakes those must still get its responses.
import { clearTimeout, setTimeout } from 'node:timers';
import { choice, integer, isRecord, record, refuse } from './checks.js';
import { json, lowerCased, type Reply, verbatim } from './reply.js';

/** Part of the service that a fault affects: `/oauth/authorize`, `/oauth/token`, or everything below `/api/`. */
export type Endpoint = 'authorize' | 'token' | 'api';

/** A failure to inject. An empty one is a response with status 500. */
export interface Fault {
  /** Default: 500; with a `body` 200, or 400 (`invalid_client`: 401) if that body has an `error`, like a refusal. */
  readonly status?: number | undefined;
  /** Added to the response. They replace its own. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** Text is sent as HTML if it begins with `<`, else as plain text; bytes are sent unchanged; anything else as JSON. */
  readonly body?: unknown;
  /** Never responds. */
  readonly hang?: boolean | undefined;
  /** Resets the connection (TCP RST) instead of responding. */
  readonly reset?: boolean | undefined;
  /** Milliseconds to wait first. Alone, it delays the request, which is then served as usual. */
  readonly delay?: number | undefined;
  /** The request takes its full effect first. Then its response is lost: replaced by this fault, or by a reset if the fault has no other member. */
  readonly afterEffect?: boolean | undefined;
  /** Number of requests that it affects; default 1, `Infinity` for all. */
  readonly times?: number | undefined;
}

/** Result of a request: a response, or none. */
export type Outcome = Reply | 'hang' | 'reset';

interface QueuedFault {
  readonly endpoint: Endpoint;
  readonly fault: Fault;
  left: number;
}

const endpoints: readonly Endpoint[] = ['authorize', 'token', 'api'];
const keys = ['status', 'headers', 'body', 'hang', 'reset', 'delay', 'afterEffect', 'times'];

/** Queues the faults of each endpoint and applies them in order. */
export class Faults {
  #queue: readonly QueuedFault[] = [];
  readonly #delays = new Map<NodeJS.Timeout, () => void>();

  /**
   * Queues a fault.
   *
   * @returns A function that removes it, as far as it has not been applied yet.
   * @throws {EmulatorError} `ERR_EMULATOR_OPTION` if the endpoint or the fault is malformed.
   */
  add(endpoint: unknown, fault: unknown = {}): () => void {
    const checked = checkedFault(fault);
    const entry = {
      endpoint: choice('fail(): the endpoint', endpoint, endpoints),
      fault: checked,
      left: checked.times ?? 1,
    };
    this.#queue = [...this.#queue, entry];
    return () => this.#remove(entry);
  }

  /**
   * Serves a request, or applies the next fault of its endpoint to it.
   *
   * @param serve - Gives the request its effect and returns its usual response.
   */
  async apply(endpoint: Endpoint, serve: () => Promise<Reply>): Promise<Outcome> {
    const entry = this.#queue.find((queued) => queued.endpoint === endpoint);
    if (entry === undefined) return serve();
    entry.left -= 1;
    if (entry.left <= 0) this.#remove(entry);
    const { fault } = entry;
    if (fault.afterEffect) await serve();
    if (fault.delay !== undefined) await this.#wait(fault.delay);
    if (fault.hang) return 'hang';
    if (fault.reset) return 'reset';
    const isReplacement = fault.status !== undefined || fault.body !== undefined || fault.headers !== undefined;
    if (isReplacement) return replacement(fault);
    if (fault.afterEffect) return 'reset';
    return fault.delay === undefined ? replacement(fault) : serve();
  }

  /** Ends all delays now. */
  endDelays(): void {
    for (const [timer, resolve] of this.#delays) {
      clearTimeout(timer);
      resolve();
    }
    this.#delays.clear();
  }

  #remove(entry: QueuedFault): void {
    this.#queue = this.#queue.filter((queued) => queued !== entry);
  }

  #wait(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(() => {
        this.#delays.delete(timer);
        resolve();
      }, ms);
      this.#delays.set(timer, resolve);
    });
  }
}

function replacement({ status, headers, body }: Fault): Reply {
  const own = lowerCased(headers ?? {});
  if (body === undefined) {
    return json(status ?? 500, { error: 'server_error', error_description: 'The test asked for this fault.' }, own);
  }
  const error = isRecord(body) && typeof body.error === 'string' ? body.error : undefined;
  const usual = error === undefined ? 200 : error === 'invalid_client' ? 401 : 400;
  return typeof body === 'string' || body instanceof Uint8Array
    ? verbatim(status ?? usual, body, own)
    : json(status ?? usual, body, own);
}

function checkedFault(value: unknown): Fault {
  const fault = record('fail(): the fault', value, keys);
  for (const key of ['hang', 'reset', 'afterEffect']) {
    const given = fault[key];
    if (given !== undefined && typeof given !== 'boolean') refuse(key, 'true or false', given);
  }
  if (fault.status !== undefined) integer('status', fault.status, 200, 599);
  if (fault.delay !== undefined) integer('delay', fault.delay, 0, 2 ** 31 - 1);
  const { times } = fault;
  if (times !== undefined && times !== Number.POSITIVE_INFINITY) integer('times', times, 1, Number.MAX_SAFE_INTEGER);
  if (fault.headers !== undefined) checkHeaders(fault.headers);
  return { ...fault };
}

function checkHeaders(headers: unknown): void {
  if (!isRecord(headers)) refuse('headers', 'an object of header names and values', headers);
  for (const [name, value] of Object.entries(headers)) {
    if (typeof value !== 'string') refuse(`headers["${name}"]`, 'a string', value);
    try {
      validateHeaderName(name);
      validateHeaderValue(name, value);
    } catch {
      refuse(`headers["${name}"]`, 'a valid header', value);
    }
  }
}
