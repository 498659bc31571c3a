import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import { TLSSocket } from 'node:tls';
import type { Endpoint, Faults, Outcome } from './faults.js';
import {
  apiRefusal,
  type IncomingRequest,
  parseBody,
  type Query,
  type Reply,
  readRequest,
  refusal,
  write,
} from './messages.js';

/** A request as the service received it, whatever the outcome. */
export interface ServiceRequest {
  readonly method: string;
  /** Without the query. */
  readonly path: string;
  readonly query: Query;
  readonly headers: IncomingHttpHeaders;
  /** Parsed if it is JSON, text if it is textual, else bytes. `undefined` if there was no body, or it was too large or dropped. */
  readonly body: unknown;
}

/** The outcome of a request, and its time. */
export interface RequestResult {
  /** Status of the response, or the reason why there was none. */
  readonly outcome: number | 'hang' | 'reset' | 'gone';
  /** Epoch milliseconds of this computer. */
  readonly at: number;
  readonly durationMs: number;
}

/** Data of a recorded request that `ServiceRequest` does not have. */
export interface RequestRecord {
  readonly id: number;
  readonly host: string;
  /** `undefined` while the request is in progress. */
  result: RequestResult | undefined;
}

/** The body of a request, until it is dropped. */
interface KeptBody {
  bytes: Buffer | undefined;
}

/** Keeps the newest requests in order of arrival, and a limited amount of their bodies. */
export class RequestLog {
  /** Never replaced, so a test can hold on to it or empty it with `requests.length = 0`. */
  readonly requests: ServiceRequest[] = [];
  /** The result and host of each recorded request. */
  readonly records: WeakMap<ServiceRequest, RequestRecord> = new WeakMap();
  #count = 0;
  readonly #maxRequests: number;
  readonly #maxBodyBytes: number;
  /** The requests with a body, oldest first. */
  #bodies: { readonly request: ServiceRequest; readonly kept: KeptBody; readonly length: number }[] = [];
  #bodyBytes = 0;

  /**
   * @param maxRequests - How many are kept; 0 keeps none.
   * @param maxBodyBytes - Of all bodies together. The oldest bodies are dropped first.
   */
  constructor(maxRequests: number, maxBodyBytes: number) {
    this.#maxRequests = maxRequests;
    this.#maxBodyBytes = maxBodyBytes;
  }

  /** Adds a request. Returns a function that adds its result. */
  add(incoming: IncomingRequest): (result: RequestResult) => void {
    if (this.#maxRequests === 0) return () => {};
    if (this.requests.length === 0) this.#forgetBodies();
    if (this.requests.length >= this.#maxRequests) {
      // Dropping a tenth at once is far cheaper than dropping one each time.
      const dropped = new Set<unknown>(this.requests.splice(0, Math.ceil(this.#maxRequests / 10)));
      this.#bodies = this.#bodies.filter(({ request }) => !dropped.has(request));
      this.#bodyBytes = this.#bodies.reduce((sum, { length }) => sum + length, 0);
    }
    const { method, path, query, headers } = incoming;
    const kept: KeptBody = { bytes: incoming.bytes };
    const request = {
      method,
      path,
      query: query ?? {},
      headers,
      // Parsed when it is read: an object may be a hundred times as large as its JSON.
      get body() {
        return parseBody({ headers, bytes: kept.bytes });
      },
    };
    this.requests.push(request);
    this.#keepBody(request, kept);
    this.#count += 1;
    const record: RequestRecord = { id: this.#count, host: incoming.host, result: undefined };
    this.records.set(request, record);
    return (result) => {
      record.result = result;
    };
  }

  /** True if requests are recorded at all. */
  get isOn(): boolean {
    return this.#maxRequests > 0;
  }

  clear(): void {
    this.requests.length = 0;
    this.#forgetBodies();
  }

  #keepBody(request: ServiceRequest, kept: KeptBody): void {
    const length = kept.bytes?.length ?? 0;
    if (length === 0) return;
    this.#bodies.push({ request, kept, length });
    this.#bodyBytes += length;
    if (this.#bodyBytes <= this.#maxBodyBytes) return;
    let count = 0;
    while (this.#bodyBytes > this.#maxBodyBytes) {
      const oldest = this.#bodies[count];
      if (oldest === undefined) break;
      oldest.kept.bytes = undefined;
      this.#bodyBytes -= oldest.length;
      count += 1;
    }
    this.#bodies.splice(0, count);
  }

  #forgetBodies(): void {
    this.#bodies = [];
    this.#bodyBytes = 0;
  }
}

/** A request and its outcome, for a log or a live view. It has no query, header or body, and so no secret. */
export interface LogEntry {
  readonly method: string;
  readonly host: string;
  /** Without the query. */
  readonly path: string;
  /** Status of the response, or the reason why there was none. */
  readonly outcome: number | 'hang' | 'reset' | 'gone';
  readonly durationMs: number;
}

/** A request that an endpoint has admitted. */
export interface Admitted {
  readonly serve: () => Promise<Reply>;
  /** Called when the request has its outcome. */
  readonly release?: () => void;
}

/** Dependencies of the server. */
export interface ServerSetting {
  /** Finds the endpoint of a request: `undefined` if there is none, a response if it is refused before any fault is applied. */
  readonly route: (incoming: IncomingRequest) => Endpoint | Reply | undefined;
  /** Admits a request, or refuses it before any fault is applied. */
  readonly endpoints: Readonly<Record<Endpoint, (incoming: IncomingRequest) => Admitted | Reply>>;
  /** Serves control requests and the status page, which are neither recorded nor failed. Returns false for any other request. */
  readonly control: (incoming: IncomingRequest, response: ServerResponse) => boolean;
  readonly faults: Faults;
  /** Returns the tenant whose host a request is for. */
  readonly tenantOf: (incoming: IncomingRequest) => string | undefined;
  readonly requests: RequestLog;
  /** Bytes. */
  readonly bodyLimit: number;
  /** Called with the outcome of each request. */
  readonly finished: (entry: LogEntry) => void;
}

/** Returns the request listener, which reads and records a request, serves it or applies a fault, and writes the response. It never throws. */
export function requestListener(setting: ServerSetting): (request: IncomingMessage, response: ServerResponse) => void {
  return function serveRequest(request, response) {
    // A client may disconnect early.
    response.on('error', () => {});
    void exchange(request, response, setting).catch(() => response.destroy());
  };
}

async function exchange(request: IncomingMessage, response: ServerResponse, setting: ServerSetting): Promise<void> {
  const startedAt = performance.now();
  const incoming = await readRequest(request, setting.bodyLimit);
  if (incoming === undefined || setting.control(incoming, response)) return;
  const record = setting.requests.add(incoming);
  const result = await serve(incoming, setting);
  const outcome = response.destroyed ? 'gone' : typeof result === 'string' ? result : result.status;
  const durationMs = performance.now() - startedAt;
  record({ outcome, durationMs, at: Date.now() });
  const { socket } = response;
  if (typeof result === 'object') writeSafely(response, result, incoming.method === 'HEAD');
  // A TLS socket cannot send a reset, so the connection is closed instead.
  else if (result === 'reset' && socket instanceof TLSSocket) socket.destroy();
  else if (result === 'reset') socket?.resetAndDestroy();
  const { method, path, host } = incoming;
  setting.finished({ method, host, path, outcome, durationMs });
}

// A route of a test may return headers or a status that HTTP does not allow.
function writeSafely(response: ServerResponse, reply: Reply, head: boolean): void {
  try {
    write(response, reply, { head });
  } catch (error) {
    if (response.headersSent) response.destroy();
    else write(response, handlerFailed('api', error), { head });
  }
}

async function serve(incoming: IncomingRequest, setting: ServerSetting): Promise<Outcome> {
  const { route, endpoints, faults, bodyLimit } = setting;
  const endpoint = route(incoming);
  if (typeof endpoint === 'object') return endpoint;
  if (incoming.bytes === undefined) {
    const message = `The body is larger than ${bodyLimit === 1024 * 1024 ? '1 MiB' : `${bodyLimit} bytes`}.`;
    return endpoint === 'api' ? apiRefusal(413, message) : refusal(413, 'invalid_request', message);
  }
  if (endpoint === undefined) return refusal(404, 'not_found', 'Nothing exists at this path.');
  const admitted = endpoints[endpoint](incoming);
  if ('status' in admitted) return admitted;
  try {
    return await faults.apply(endpoint, setting.tenantOf(incoming), () =>
      admitted.serve().catch((error) => handlerFailed(endpoint, error)),
    );
  } finally {
    admitted.release?.();
  }
}

function handlerFailed(endpoint: Endpoint, error: unknown): Reply {
  const message = error instanceof Error ? error.message : 'A route of the emulator failed.';
  return endpoint === 'api' ? apiRefusal(500, message) : refusal(500, 'server_error', message);
}
