import type { Emulator } from '../../src/emulator/index.js';
import type { Canaries } from '../security/canaries.js';
import { answer, type Behaviour, type ReceivedRequest, startFaultyServer } from '../support/faulty-server.js';

export type Endpoint = 'token' | 'revoke' | 'api' | 'other';

/** Stands before the service: passes everything on, fails as it is told, and sees every secret that goes by. */
export interface Gateway {
  readonly origin: string;
  /** From now on all requests to the endpoint meet this, until `heal`. */
  fail(endpoint: Endpoint, behaviour: Behaviour): void;
  heal(): void;
  /** What came in for the endpoint. */
  requests(endpoint: Endpoint): readonly ReceivedRequest[];
  /** Passes a request on, for its effect, and then does something else than answer. */
  afterEffect(behaviour: Behaviour): Behaviour;
  close(): Promise<void>;
}

const PASSED_ON = ['accept', 'authorization', 'content-type', 'cookie'];

/** Starts a gateway before a service that runs. The secrets that it sees are given to `canaries`. */
export async function startGateway(service: Emulator, canaries: Canaries): Promise<Gateway> {
  const server = await startFaultyServer();
  const faults = new Map<Endpoint, Behaviour>();
  /** Passes a request on, and does with the answer what is told. */
  const passing =
    (does: (answered: Behaviour) => Behaviour): Behaviour =>
    (socket, request) => {
      void passOn(service.authUrl, request, canaries).then(
        (answered) => does(answered)(socket, request),
        () => socket.destroy(),
      );
    };
  const pass = passing((answered) => answered);
  server.always((socket, request) => {
    hideSecretsOf(canaries, request.body.toString());
    (faults.get(endpointOf(request)) ?? pass)(socket, request);
  });
  return {
    origin: server.origin,
    fail: (endpoint, behaviour) => void faults.set(endpoint, behaviour),
    heal: () => faults.clear(),
    requests: (endpoint) => server.requests.filter((request) => endpointOf(request) === endpoint),
    afterEffect: (behaviour) => passing(() => behaviour),
    close: server.close,
  };
}

function endpointOf({ target }: ReceivedRequest): Endpoint {
  if (target.startsWith('/oauth/token')) return 'token';
  if (target.startsWith('/oauth/revoke')) return 'revoke';
  return target.startsWith('/api/') ? 'api' : 'other';
}

async function passOn(origin: string, request: ReceivedRequest, canaries: Canaries): Promise<Behaviour> {
  const { method, target, body } = request;
  const headers = Object.fromEntries(Object.entries(request.headers).filter(([name]) => PASSED_ON.includes(name)));
  const hasBody = method !== 'GET' && method !== 'HEAD';
  const init = { method, headers, redirect: 'manual', ...(hasBody ? { body: new Uint8Array(body) } : {}) } as const;
  const response = await fetch(origin + target, init);
  const text = await response.text();
  if (endpointOf(request) === 'token') hideSecretsOf(canaries, text);
  const kept = ['content-type', 'location', 'set-cookie'].flatMap((name) => {
    const value = response.headers.get(name);
    return value === null ? [] : [[name, value]];
  });
  return answer(response.status, Object.fromEntries(kept), text);
}

const SECRET_FIELDS = ['access_token', 'client_secret', 'code', 'code_verifier', 'refresh_token'];

function hideSecretsOf(canaries: Canaries, text: string): void {
  if (!text.startsWith('{')) return;
  const fields = JSON.parse(text) as Record<string, unknown>;
  for (const name of SECRET_FIELDS) canaries.hide(name, fields[name]);
}
