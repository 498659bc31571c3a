import type { Dispatcher } from 'undici';
import type { HttpHeaders } from './message.js';

/** Controls a request that a dispatcher performs. */
export type Controller = Pick<Dispatcher.DispatchController, 'abort' | 'pause' | 'resume'>;

/** What a dispatcher reports on one request. */
export interface Receiver {
  /** Called once there is a connection, before anything is sent. */
  started(controller: Controller): void;
  /** Called for each informational response, and for the final one. */
  answered(status: number, headers: ReceivedHeaders): void;
  received(chunk: Buffer): void;
  ended(): void;
  faulted(fault: unknown): void;
}

/** Headers as undici's parser reports them: names and values in turn. */
type RawHeaders = readonly (Buffer | string)[];

/** Headers of a response; {@link allHeaders} returns them all. */
export interface ReceivedHeaders {
  /** Those that tell how to read the body (`content-type`, `content-encoding`, `content-length`), and maybe others. */
  readonly ofBody: HttpHeaders;
  /** All, not decoded yet; `undefined` if `ofBody` has them all. */
  readonly raw: RawHeaders | undefined;
}

/** Lengths of the names `content-type`, `content-length` and `content-encoding`. */
const BODY_HEADER_LENGTHS: ReadonlySet<number> = new Set([12, 14, 16]);

/**
 * Passes on what the own pool reports.
 *
 * The handler interface is that of undici up to 6: undici 7 calls such a handler directly, but wraps one of its newer
 * interface in two more objects and decodes all headers for it.
 */
export class PoolHandler implements Controller {
  protected readonly receiver: Receiver;
  #abort: ((reason?: Error) => void) | undefined = undefined;
  #resume: (() => void) | undefined = undefined;
  #isPaused = false;

  constructor(receiver: Receiver) {
    this.receiver = receiver;
  }

  onConnect(abort: (reason?: Error) => void): void {
    this.#abort = abort;
    this.receiver.started(this);
  }

  onHeaders(status: number, raw: RawHeaders, resume: () => void): boolean {
    this.#resume = resume;
    this.receiver.answered(status, { ofBody: decoded(raw, BODY_HEADER_LENGTHS), raw });
    return !this.#isPaused;
  }

  onData(chunk: Buffer): boolean {
    this.receiver.received(chunk);
    return !this.#isPaused;
  }

  onComplete(): void {
    this.receiver.ended();
  }

  onError(fault: unknown): void {
    this.receiver.faulted(fault);
  }

  abort(reason: Error): void {
    this.#abort?.(reason);
  }

  pause(): void {
    this.#isPaused = true;
  }

  resume(): void {
    if (!this.#isPaused) return;
    this.#isPaused = false;
    this.#resume?.();
  }
}

/**
 * Passes on what a dispatcher of the user reports. It may come from any copy of undici, so the handler has both
 * interfaces: that of undici 7 and later, and that of undici up to 6, which Node 20 and 22 have built in.
 */
export class ForeignHandler extends PoolHandler implements Dispatcher.DispatchHandler {
  onRequestStart(controller: Controller): void {
    this.receiver.started(controller);
  }

  onResponseStart(_controller: unknown, status: number, headers: HttpHeaders): void {
    this.receiver.answered(status, { ofBody: headers, raw: undefined });
  }

  onResponseData(_controller: unknown, chunk: Buffer): void {
    this.receiver.received(chunk);
  }

  onResponseEnd(): void {
    this.receiver.ended();
  }

  onResponseError(_controller: unknown, fault: unknown): void {
    this.receiver.faulted(fault);
  }
}

/** Returns all headers of a response. Decoded here, because most callers want the data alone. */
export function allHeaders({ ofBody, raw }: ReceivedHeaders): HttpHeaders {
  return raw === undefined ? ofBody : decoded(raw);
}

/** Returns the headers whose names have one of these lengths. Default: all. */
function decoded(raw: RawHeaders, lengths?: ReadonlySet<number>): HttpHeaders {
  const headers: Record<string, string | string[]> = {};
  for (let index = 0; index + 1 < raw.length; index += 2) {
    const name = raw[index];
    if (name === undefined || (lengths !== undefined && !lengths.has(name.length))) continue;
    const content = raw[index + 1] ?? '';
    const key = (typeof name === 'string' ? name : name.toString('latin1')).toLowerCase();
    const value = typeof content === 'string' ? content : content.toString('latin1');
    const before = Object.hasOwn(headers, key) ? headers[key] : undefined;
    if (before !== undefined) headers[key] = [before, value].flat();
    else if (key !== '__proto__') headers[key] = value;
    else Object.defineProperty(headers, key, { value, enumerable: true, configurable: true, writable: true });
  }
  return headers;
}
