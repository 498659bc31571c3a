import type { IncomingMessage, ServerResponse } from 'node:http';
import { TLSSocket } from 'node:tls';
import type { Endpoint, Faults, Outcome } from './faults.js';
import { type IncomingRequest, readRequest } from './incoming-request.js';
import { type Reply, refusal, write } from './reply.js';
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
  /** Admits a request, or refuses it before any fault is applied. */
  readonly endpoints: Readonly<Record<Endpoint, (incoming: IncomingRequest) => Admitted | Reply>>;
  readonly faults: Faults;
  readonly requests: RequestLog;
  readonly log: ((entry: LogEntry) => void) | undefined;
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
  const incoming = await readRequest(request);
  if (incoming === undefined) return;
  setting.requests.add(incoming);
  const result = await serve(incoming, setting);
  const outcome = response.destroyed ? 'gone' : typeof result === 'string' ? result : result.status;
  const { method, path, headers } = incoming;
  setting.log?.({ method, host: headers.host ?? '', path, outcome, durationMs: performance.now() - startedAt });
  if (result === 'reset') reset(response);
  else if (result !== 'hang') writeSafely(response, result, method === 'HEAD');
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
    else write(response, handlerFailed(error), { head });
  }
}

async function serve(incoming: IncomingRequest, { endpoints, faults }: ServerSetting): Promise<Outcome> {
  if (incoming.text === undefined) {
    return refusal(413, 'invalid_request', 'The body is larger than 1 MiB.', { connection: 'close' });
  }
  const endpoint = endpointOf(incoming);
  if (endpoint === undefined) return refusal(404, 'not_found', 'There is nothing at this path.');
  const admitted = endpoints[endpoint](incoming);
  if ('status' in admitted) return admitted;
  try {
    return await faults.apply(endpoint, () => admitted.serve().catch(handlerFailed));
  } finally {
    admitted.release?.();
  }
}

// The hosts of enterprise organizations are API hosts only (service.md, "Addresses").
function endpointOf({ path, organization }: IncomingRequest): Endpoint | undefined {
  if (path.startsWith('/api/')) return 'api';
  if (organization !== undefined) return undefined;
  if (path === '/oauth/token') return 'token';
  return path === '/oauth/authorize' ? 'authorize' : undefined;
}

function handlerFailed(error: unknown): Reply {
  return refusal(500, 'server_error', error instanceof Error ? error.message : 'A route of the emulator failed.');
}
