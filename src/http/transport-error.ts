import { safeCause } from '../redaction.js';
import type { HttpResponse } from './message.js';

const MESSAGES = {
  /** Refused, DNS, TLS or a timeout of the connection. Nothing was sent. */
  connect: 'could not connect to HOST',
  /** Nothing was sent. */
  address: 'HOST resolves to a private address, which only a host that is listed exactly may have',
  /** Nothing was sent. */
  pool: 'timed out waiting for a connection to HOST: all are in use. Read the bodies of `fetch` and `stream` to their end, or cancel them',
  timeout: 'no complete response from HOST in time',
  /** Also for a response that was cut short. */
  reset: 'the connection to HOST broke',
  protocol: 'the response of HOST is not valid HTTP',
  'too-large': 'the response is larger than allowed',
  encoding: 'the content encoding of the response is damaged',
  unread: 'the body was not read for too long',
  aborted: 'aborted by the caller',
  closed: 'the HTTP client is closed',
  /** Nothing was sent. */
  request: 'the dispatcher does not accept such a request',
};

/** Why a request has no usable response. */
export type TransportFault = keyof typeof MESSAGES;

/** Reports an HTTP request without a usable response. Applications see it only as a `cause`. Holds no secret. */
export class TransportError extends Error {
  override readonly name = 'TransportError';
  readonly kind: TransportFault;
  /** True once the request, or a part of it, may have reached the service. */
  readonly sent: boolean;
  /** Name and port, if known. */
  readonly host: string;
  /** The response whose body is too large or damaged, without that body. Not enumerable: logs leave out its headers. */
  declare readonly response: HttpResponse | undefined;

  /** @param origin Of the request */
  constructor(kind: TransportFault, sent: boolean, fault?: unknown, origin?: string) {
    const host = origin === undefined ? 'the service' : new URL(origin).host;
    super(MESSAGES[kind].replace('HOST', host), fault === undefined ? undefined : { cause: safeCause(fault) });
    this.kind = kind;
    this.sent = sent;
    this.host = host;
  }
}

/** Code of a lookup that found an address which is not allowed. */
export const PRIVATE_ADDRESS = 'ERR_PRIVATE_ADDRESS';

/** Codes of undici's errors that say more than whether the request was sent. */
const KINDS: Readonly<Record<string, TransportFault>> = {
  [PRIVATE_ADDRESS]: 'address',
  UND_ERR_CONNECT_TIMEOUT: 'connect',
  UND_ERR_HEADERS_TIMEOUT: 'timeout',
  UND_ERR_BODY_TIMEOUT: 'timeout',
  UND_ERR_RES_EXCEEDED_MAX_SIZE: 'too-large',
  UND_ERR_HEADERS_OVERFLOW: 'too-large',
  UND_ERR_INVALID_ARG: 'request',
  UND_ERR_NOT_SUPPORTED: 'request',
  UND_ERR_DESTROYED: 'closed',
  UND_ERR_CLOSED: 'closed',
};

/** Returns the error for what a dispatcher reported. */
export function transportError(fault: unknown, sent: boolean, origin: string): TransportError {
  const code = faultCode(fault);
  const kind = Object.hasOwn(KINDS, code) ? KINDS[code] : undefined;
  if (kind !== undefined) return new TransportError(kind, sent && kind !== 'connect', fault, origin);
  const isParsed = !(fault instanceof Error && fault.name === 'HTTPParserError');
  const unknownKind = sent ? 'reset' : 'connect';
  return new TransportError(isParsed ? unknownKind : 'protocol', sent, fault, origin);
}

/** Returns the `code` of what a dispatcher reported; empty if it has none. */
export function faultCode(fault: unknown): string {
  return fault instanceof Error && 'code' in fault ? String(fault.code) : '';
}
