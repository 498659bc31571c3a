import { validateHeaderName, validateHeaderValue } from 'node:http';
import { choice, integer, isRecord, record, refuse } from './checks.js';
import { json, lowerCased, type Reply, verbatim } from './reply.js';

/** Where a fault strikes: `/oauth/authorize`, `/oauth/token`, or anything below `/api/`. */
export type Endpoint = 'authorize' | 'token' | 'api';

/** What goes wrong. An empty one is an answer with status 500. */
export interface Fault {
  /** Unless given: 500; with a `body` 200, or 400 (`invalid_client`: 401) if that body has an `error`, as a refusal has. */
  readonly status?: number | undefined;
  /** Added to the answer; they replace its own. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** Text is sent as HTML if it begins with `<`, else as plain text; bytes are sent as they are; anything else as JSON. */
  readonly body?: unknown;
  /** The answer never comes. */
  readonly hang?: boolean | undefined;
  /** The connection is reset (TCP RST) instead of an answer. */
  readonly reset?: boolean | undefined;
  /** Milliseconds that pass first. Alone, it delays the request, which is then served as usual. */
  readonly delay?: number | undefined;
  /** The request takes its full effect first, and then its answer is lost: replaced by what is said here, else by a reset. */
  readonly afterEffect?: boolean | undefined;
  /** How many requests it strikes; 1 unless given, `Infinity` for all. */
  readonly times?: number | undefined;
}

/** What comes out of a request: an answer, or none. */
export type Outcome = Reply | 'hang' | 'reset';

const endpoints: readonly Endpoint[] = ['authorize', 'token', 'api'];
const keys = ['status', 'headers', 'body', 'hang', 'reset', 'delay', 'afterEffect', 'times'];

/** The faults that are still to strike, first come first served. */
export class Faults {
  readonly #waiting = new Map<Endpoint, { readonly fault: Fault; left: number }[]>();

  /**
   * Lines a fault up.
   *
   * @returns Takes it back, as far as it has not struck yet.
   * @throws {EmulatorError} `ERR_EMULATOR_OPTION` if the endpoint or the fault is not understood.
   */
  add(endpoint: unknown, fault: unknown = {}): () => void {
    const checked = checkedFault(fault);
    const line = this.#line(choice('fail(): the endpoint', endpoint, endpoints));
    const entry = { fault: checked, left: checked.times ?? 1 };
    line.push(entry);
    return function cancel() {
      const index = line.indexOf(entry);
      if (index >= 0) line.splice(index, 1);
    };
  }

  /** The fault that strikes the next request of this endpoint, if one does. */
  take(endpoint: Endpoint): Fault | undefined {
    const line = this.#waiting.get(endpoint);
    const entry = line?.[0];
    if (line === undefined || entry === undefined) return undefined;
    entry.left -= 1;
    if (entry.left <= 0) line.shift();
    return entry.fault;
  }

  #line(endpoint: Endpoint): { readonly fault: Fault; left: number }[] {
    const line = this.#waiting.get(endpoint) ?? [];
    this.#waiting.set(endpoint, line);
    return line;
  }
}

/**
 * Lets a fault strike.
 *
 * @param serve - Gives the request its effect and returns the answer that it would have got.
 * @param pause - Resolves after so many milliseconds.
 */
export async function strike(
  fault: Fault,
  serve: () => Promise<Reply>,
  pause: (ms: number) => Promise<void>,
): Promise<Outcome> {
  if (fault.afterEffect) await serve();
  if (fault.delay !== undefined) await pause(fault.delay);
  if (fault.hang) return 'hang';
  if (fault.reset) return 'reset';
  if (replaces(fault)) return replacement(fault);
  if (fault.afterEffect) return 'reset';
  return fault.delay === undefined ? replacement(fault) : serve();
}

function replaces(fault: Fault): boolean {
  return fault.status !== undefined || fault.body !== undefined || fault.headers !== undefined;
}

function replacement({ status, headers, body }: Fault): Reply {
  const own = lowerCased(headers ?? {});
  if (body === undefined) {
    return json(status ?? 500, { error: 'server_error', error_description: 'The test asked for this fault.' }, own);
  }
  const usual = status ?? usualStatus(body);
  return typeof body === 'string' || body instanceof Uint8Array ? verbatim(usual, body, own) : json(usual, body, own);
}

function usualStatus(body: unknown): number {
  if (!isRecord(body) || typeof body.error !== 'string') return 200;
  return body.error === 'invalid_client' ? 401 : 400;
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
