import { safeCause } from '../redaction.js';

/**
 * Why there is no answer.
 *
 * - `connect`: no connection (refused, DNS, TLS, connect time-out); nothing left.
 * - `timeout`: the request's own limit of time was reached.
 * - `reset`: the connection broke, or the answer was cut short.
 * - `protocol`: what came is not HTTP.
 * - `too-large`: the answer's body is over the limit.
 * - `encoding`: the answer's content encoding is unknown, chained or damaged.
 * - `aborted`: the caller's signal.
 * - `closed`: the client was closed.
 * - `request`: the dispatcher does not take such a request; nothing left.
 */
export type TransportFault =
  | 'connect'
  | 'timeout'
  | 'reset'
  | 'protocol'
  | 'too-large'
  | 'encoding'
  | 'aborted'
  | 'closed'
  | 'request';

const MESSAGES: Readonly<Record<TransportFault, string>> = {
  connect: 'could not connect',
  timeout: 'no complete answer in time',
  reset: 'the connection broke',
  protocol: 'the answer is not valid HTTP',
  'too-large': 'the answer is larger than allowed',
  encoding: 'the content encoding of the answer cannot be decoded',
  aborted: 'aborted by the caller',
  closed: 'the HTTP client is closed',
  request: 'the dispatcher does not take such a request',
};

/** An HTTP request that brought no usable answer. Internal: users get it as a `cause` only. Holds no secret. */
export class TransportError extends Error {
  override readonly name = 'TransportError';
  readonly kind: TransportFault;
  /** Whether the request, or a part of it, may have reached the service. */
  readonly left: boolean;

  constructor(kind: TransportFault, left: boolean, fault?: unknown) {
    super(MESSAGES[kind], fault === undefined ? undefined : { cause: safeCause(fault) });
    this.kind = kind;
    this.left = left;
  }
}

/** Codes of undici's errors that say more than whether the request left. */
const KINDS: Readonly<Record<string, TransportFault>> = {
  UND_ERR_CONNECT_TIMEOUT: 'connect',
  UND_ERR_HEADERS_TIMEOUT: 'timeout',
  UND_ERR_BODY_TIMEOUT: 'timeout',
  UND_ERR_RES_EXCEEDED_MAX_SIZE: 'too-large',
  UND_ERR_HEADERS_OVERFLOW: 'too-large',
  UND_ERR_INVALID_ARG: 'request',
  UND_ERR_NOT_SUPPORTED: 'request',
  UND_ERR_REQ_CONTENT_LENGTH_MISMATCH: 'request',
  UND_ERR_DESTROYED: 'closed',
  UND_ERR_CLOSED: 'closed',
};

/** The error for what a dispatcher reported. */
export function transportError(fault: unknown, left: boolean): TransportError {
  const code = fault instanceof Error && 'code' in fault ? String(fault.code) : '';
  const kind = Object.hasOwn(KINDS, code) ? KINDS[code] : undefined;
  if (kind !== undefined) return new TransportError(kind, left && kind !== 'connect', fault);
  if (fault instanceof Error && fault.name === 'HTTPParserError') return new TransportError('protocol', left, fault);
  return new TransportError(left ? 'reset' : 'connect', left, fault);
}
