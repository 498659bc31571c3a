import type { IncomingMessage, ServerResponse } from 'node:http';
import { TLSSocket } from 'node:tls';
import type { Endpoint, Faults, Outcome } from './faults.js';
import { type IncomingRequest, readRequest } from './incoming-request.js';
import { apiRefusal, type Reply, refusal, write } from './reply.js';
import type { RequestLog } from './request-log.js';

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
  readonly requests: RequestLog;
  /** Bytes. */
  readonly bodyLimit: number;
  /** Called when a request has its outcome. */
  readonly finished: (entry: LogEntry) => void;
}

/** Returns the request listener: it reads, records, serves or applies a fault, and writes the response. It never throws. */
export function requestListener(setting: ServerSetting): (request: IncomingMessage, response: ServerResponse) => void {
  return function serveRequest(request, response) {
    // A client that disconnects early is not an error of the service.
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
  if (result === 'reset') reset(response);
  else if (result !== 'hang') writeSafely(response, result, incoming.method === 'HEAD');
  const { method, path, host } = incoming;
  setting.finished({ method, host, path, outcome, durationMs });
}

// A socket under TLS cannot send a reset itself; there the connection just ends.
function reset({ socket }: ServerResponse): void {
  if (socket instanceof TLSSocket) socket.destroy();
  else socket?.resetAndDestroy();
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
    const headers = { connection: 'close' };
    return endpoint === 'api' ? apiRefusal(413, message, headers) : refusal(413, 'invalid_request', message, headers);
  }
  if (endpoint === undefined) return refusal(404, 'not_found', 'There is nothing at this path.');
  const admitted = endpoints[endpoint](incoming);
  if ('status' in admitted) return admitted;
  try {
    return await faults.apply(endpoint, () => admitted.serve().catch((error) => handlerFailed(endpoint, error)));
  } finally {
    admitted.release?.();
  }
}

function handlerFailed(endpoint: Endpoint, error: unknown): Reply {
  const message = error instanceof Error ? error.message : 'A route of the emulator failed.';
  return endpoint === 'api' ? apiRefusal(500, message) : refusal(500, 'server_error', message);
}
