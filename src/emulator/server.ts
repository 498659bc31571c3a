import type { IncomingMessage, ServerResponse } from 'node:http';
import { TLSSocket } from 'node:tls';
import { type Admission, type Api, organizationOf, unknownPath } from './api.js';
import { type AuthorizeSetting, authorize } from './authorization-endpoint.js';
import { type Endpoint, type Faults, type Outcome, strike } from './faults.js';
import { type Incoming, readIncoming } from './incoming-request.js';
import type { LogEntry } from './options.js';
import type { Pauses } from './pauses.js';
import { type Reply, refusal, write } from './reply.js';
import type { RequestLog } from './request-log.js';
import { type TokenSetting, token } from './token-endpoint.js';

/** The parts that answer requests. */
export interface ServerSetting {
  readonly authorize: AuthorizeSetting;
  readonly token: TokenSetting;
  readonly api: Api;
  readonly faults: Faults;
  readonly pauses: Pauses;
  readonly requests: RequestLog;
  readonly log: ((entry: LogEntry) => void) | undefined;
}

/** The request listener: reads, records, lets a fault strike or serves, answers. It never throws. */
export function requestListener(setting: ServerSetting): (request: IncomingMessage, response: ServerResponse) => void {
  return function serveRequest(request, response) {
    // A client that goes away early is its own affair.
    response.on('error', () => {});
    void exchange(request, response, setting).catch(() => response.destroy());
  };
}

async function exchange(request: IncomingMessage, response: ServerResponse, setting: ServerSetting): Promise<void> {
  const startedAt = setting.log === undefined ? 0 : performance.now();
  const incoming = await readIncoming(request);
  if (incoming === undefined) return;
  setting.requests.add(incoming);
  const outcome = await outcomeOf(incoming, setting);
  const { method, path, headers } = incoming;
  const gone = response.destroyed;
  setting.log?.({
    method,
    host: headers.host ?? '',
    path,
    outcome: gone ? 'gone' : typeof outcome === 'string' ? outcome : outcome.status,
    durationMs: performance.now() - startedAt,
  });
  if (!gone) finish(response, outcome, method);
}

function finish(response: ServerResponse, outcome: Outcome, method: string): void {
  if (outcome === 'hang') return;
  if (outcome === 'reset') reset(response);
  else writeSafely(response, outcome, method === 'HEAD');
}

// What a route of a test returns may have headers or a status that HTTP does not have.
function writeSafely(response: ServerResponse, reply: Reply, head: boolean): void {
  try {
    write(response, reply, { head });
  } catch (error) {
    if (response.headersSent) response.destroy();
    else write(response, handlerFailed(error), { head });
  }
}

// A socket under TLS cannot send a reset by itself; there the connection just ends.
function reset({ socket }: ServerResponse): void {
  if (socket instanceof TLSSocket) socket.destroy();
  else socket?.resetAndDestroy();
}

async function outcomeOf(incoming: Incoming, setting: ServerSetting): Promise<Outcome> {
  if (incoming.text === undefined) {
    return refusal(413, 'invalid_request', 'The body is larger than 1 MiB.', { connection: 'close' });
  }
  const endpoint = endpointOf(incoming);
  if (endpoint === undefined) return unknownPath();
  const admission = admit(endpoint, incoming, setting);
  if ('status' in admission) return admission;
  try {
    return await struck(endpoint, admission, setting);
  } finally {
    admission.release();
  }
}

function struck(endpoint: Endpoint, { serve }: Admission, { faults, pauses }: ServerSetting): Promise<Outcome> {
  const safely = () => serve().catch(handlerFailed);
  const fault = faults.take(endpoint);
  return fault === undefined ? safely() : strike(fault, safely, (ms) => pauses.pause(ms));
}

function admit(endpoint: Endpoint, incoming: Incoming, setting: ServerSetting): Admission | Reply {
  if (endpoint === 'api') return setting.api.admit(incoming);
  const serve = async () =>
    endpoint === 'token' ? token(incoming, setting.token) : authorize(incoming, setting.authorize);
  return { serve, release: () => {} };
}

// The hosts of enterprise organizations are API hosts only (service.md, "Addresses").
function endpointOf({ path, headers }: Incoming): Endpoint | undefined {
  if (path.startsWith('/api/')) return 'api';
  if (organizationOf(headers.host) !== undefined) return undefined;
  if (path === '/oauth/token') return 'token';
  return path === '/oauth/authorize' ? 'authorize' : undefined;
}

function handlerFailed(error: unknown): Reply {
  return refusal(500, 'server_error', error instanceof Error ? error.message : 'A route of the emulator failed.');
}
