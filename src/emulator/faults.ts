import { validateHeaderName, validateHeaderValue } from 'node:http';
// Not the global timers: a test that fakes those must still get its responses.
import { clearTimeout, setTimeout } from 'node:timers';
import { choice, integer, isRecord, record, refuse } from './checks.js';
import { apiRefusal, form, json, lowerCased, type Reply, refusal, verbatim } from './messages.js';

/** Part of the service that a fault affects: `/oauth/authorize`, `/oauth/token`, `/oauth/revoke`, or everything below `/api/`. */
export type Endpoint = 'authorize' | 'token' | 'revoke' | 'api';

/** Milliseconds: a number, or a range from which each request gets a random value. */
export type Delay = number | readonly [min: number, max: number];

/** A failure to inject. An empty one is a response with status 500. */
export interface Fault {
  /** Default: 500; with a `body` 200, or 400 (`invalid_client`: 401) if that body has an `error`, like a refusal. */
  readonly status?: number | undefined;
  /** Added to the response. They replace its own. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /**
   * Text is sent as HTML if it begins with `<`, else as plain text; `URLSearchParams` as a form; bytes are sent unchanged; anything
   * else as JSON. `''` is an empty body.
   */
  readonly body?: unknown;
  /** Never responds. */
  readonly hang?: boolean | undefined;
  /** Resets the connection (TCP RST) instead of responding. */
  readonly reset?: boolean | undefined;
  /** Milliseconds to wait first. Alone, it delays the request, which is then served as usual. */
  readonly delay?: Delay | undefined;
  /** The request takes its full effect first. Then its response is lost: replaced by this fault, or by a reset if the fault has no other member. */
  readonly afterEffect?: boolean | undefined;
  /** Number of requests that it affects. Default: 1, or all if there is a `rate`. `Infinity` for all. */
  readonly times?: number | undefined;
  /** Share of the requests that it affects, above 0 and up to 1. Default: 1, which is every request. */
  readonly rate?: number | undefined;
  /** Affects requests to the host of this tenant only. Default: requests to every host. */
  readonly tenant?: string | undefined;
}

/** Result of a request: a response, or none. */
export type Outcome = Reply | 'hang' | 'reset';

/** A fault in the queue. */
export interface QueuedFault {
  readonly id: number;
  readonly endpoint: Endpoint;
  readonly fault: Fault;
  /** Number of requests that it still affects. */
  readonly left: number;
}

const endpoints: readonly Endpoint[] = ['authorize', 'token', 'revoke', 'api'];
const keys = ['status', 'headers', 'body', 'hang', 'reset', 'delay', 'afterEffect', 'times', 'rate', 'tenant'];
const maxDelayMs = 2 ** 31 - 1;

/** Queues the faults of each endpoint and applies them in order. */
export class Faults {
  readonly #random: () => number;
  readonly #latency: Delay | undefined;
  readonly #tenants: readonly string[];
  readonly #delays = new Map<NodeJS.Timeout, () => void>();
  /** The faults that still affect requests, in order. A change replaces the list. */
  queue: readonly QueuedFault[] = [];
  #count = 0;

  /**
   * @param random - Returns a number from 0 up to 1.
   * @param latency - Delays every request.
   * @param tenants - Names that a fault may have.
   */
  constructor(random: () => number, latency: Delay | undefined, tenants: readonly string[]) {
    this.#random = random;
    this.#latency = latency;
    this.#tenants = tenants;
  }

  /**
   * Queues a fault and returns its id.
   *
   * @throws {EmulatorError} `ERR_EMULATOR_OPTION` if the endpoint or the fault is malformed.
   */
  add(endpoint: unknown, fault: unknown = {}): number {
    const checked = checkedFault(fault, this.#tenants);
    this.#count += 1;
    const { times = checked.rate === undefined ? 1 : Number.POSITIVE_INFINITY } = checked;
    const queued = { endpoint: choice('fail(): the endpoint', endpoint, endpoints), fault: checked, left: times };
    this.queue = [...this.queue, { id: this.#count, ...queued }];
    return this.#count;
  }

  /** Removes a fault, as far as it has not been applied yet. Returns false if there is no such fault. */
  remove(id: number): boolean {
    const before = this.queue.length;
    this.queue = this.queue.filter((queued) => queued.id !== id);
    return this.queue.length < before;
  }

  clear(): void {
    this.queue = [];
  }

  /**
   * Serves a request, or applies the next fault of its endpoint to it.
   *
   * @param tenant - The tenant whose host the request is for, if any.
   * @param serve - Gives the request its effect and returns its usual response.
   */
  async apply(endpoint: Endpoint, tenant: string | undefined, serve: () => Promise<Reply>): Promise<Outcome> {
    const fault = this.#take(endpoint, tenant);
    if (this.#latency !== undefined) await this.#wait(this.#latency);
    if (fault === undefined) return serve();
    if (fault.afterEffect) await serve();
    if (fault.delay !== undefined) await this.#wait(fault.delay);
    if (fault.hang) return 'hang';
    if (fault.reset) return 'reset';
    const isReplacement = fault.status !== undefined || fault.body !== undefined || fault.headers !== undefined;
    if (isReplacement) return replacement(endpoint, fault);
    if (fault.afterEffect) return 'reset';
    return fault.delay === undefined ? replacement(endpoint, fault) : serve();
  }

  /** Ends all delays now. */
  endDelays(): void {
    for (const [timer, resolve] of this.#delays) {
      clearTimeout(timer);
      resolve();
    }
    this.#delays.clear();
  }

  #take(endpoint: Endpoint, tenant: string | undefined): Fault | undefined {
    const taken = this.queue.find(
      ({ endpoint: its, fault: { rate = 1, tenant: only = tenant } }) =>
        its === endpoint && only === tenant && (rate >= 1 || this.#random() < rate),
    );
    if (taken === undefined) return undefined;
    const left = taken.left - 1;
    this.queue =
      left > 0
        ? this.queue.map((queued) => (queued === taken ? { ...taken, left } : queued))
        : this.queue.filter((queued) => queued !== taken);
    return taken.fault;
  }

  #wait(delay: Delay): Promise<void> {
    const [min, max] = typeof delay === 'number' ? [delay, delay] : delay;
    return new Promise((resolve) => {
      const end = () => {
        this.#delays.delete(timer);
        resolve();
      };
      const timer = setTimeout(end, min + this.#random() * (max - min));
      this.#delays.set(timer, resolve);
    });
  }
}

function replacement(endpoint: Endpoint, { status, headers, body }: Fault): Reply {
  const own = lowerCased(headers ?? {});
  if (body === undefined) {
    const message = 'This fault was injected by a test.';
    return endpoint === 'api'
      ? apiRefusal(status ?? 500, message, own)
      : refusal(status ?? 500, 'server_error', message, own);
  }
  const error = isRecord(body) && typeof body.error === 'string' ? body.error : undefined;
  const usual = error === undefined ? 200 : error === 'invalid_client' ? 401 : 400;
  if (body instanceof URLSearchParams) return form(status ?? (body.has('error') ? 400 : 200), body, own);
  return typeof body === 'string' || body instanceof Uint8Array
    ? verbatim(status ?? usual, body, own)
    : json(status ?? usual, body, own);
}

/**
 * Returns the value as a delay.
 *
 * @throws {EmulatorError} `ERR_EMULATOR_OPTION` if it is neither a number of milliseconds nor a range of them.
 */
export function checkedDelay(option: string, value: unknown): Delay {
  if (!Array.isArray(value)) return integer(option, value, 0, maxDelayMs);
  const [min, max, ...more] = value;
  const fits = [min, max].every((end) => Number.isInteger(end) && end >= 0 && end <= maxDelayMs);
  if (!fits || more.length > 0 || min > max) refuse(option, 'a range [min, max] of whole milliseconds', value);
  return [min, max];
}

function checkedFault(value: unknown, tenants: readonly string[]): Fault {
  const fault = record('fail(): the fault', value, keys);
  for (const key of ['hang', 'reset', 'afterEffect']) {
    const given = fault[key];
    if (given !== undefined && typeof given !== 'boolean') refuse(key, 'true or false', given);
  }
  const { status, delay, times, rate, headers, tenant } = fault;
  if (status !== undefined) integer('status', status, 200, 599);
  if (delay !== undefined) checkedDelay('delay', delay);
  if (times !== undefined && times !== Number.POSITIVE_INFINITY) integer('times', times, 1, Number.MAX_SAFE_INTEGER);
  const isRate = typeof rate === 'number' && rate > 0 && rate <= 1;
  if (rate !== undefined && !isRate) refuse('rate', 'a number above 0 and up to 1', rate);
  if (headers !== undefined) checkHeaders(headers);
  if (tenant !== undefined) choice('tenant', tenant, tenants);
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
