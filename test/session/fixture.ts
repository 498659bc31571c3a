import { type IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { Socket } from 'node:net';

/** A request as Node makes it, with what a framework, Passport or a session has added to it. */
export function requestOf<T extends object>(headers: IncomingHttpHeaders = {}, added?: T): IncomingMessage & T {
  const req = Object.assign(new IncomingMessage(new Socket()), { method: 'GET', url: '/' }, added);
  Object.assign(req.headers, headers);
  return req as IncomingMessage & T;
}

/** What marks a request as one over TLS. */
export const overTls = () => ({ socket: Object.assign(new Socket(), { encrypted: true }) });

/** What marks a request as one that has come through a proxy at 10.0.0.1, in an application of Express that trusts it. */
export function throughProxy() {
  const socket = Object.defineProperty(new Socket(), 'remoteAddress', { value: '10.0.0.1' });
  const trusts = (address: unknown, hop: unknown) => address === '10.0.0.1' && hop === 0;
  return { socket, app: { get: (setting: string) => (setting === 'trust proxy fn' ? trusts : undefined) } };
}

/** Resolves when what has begun within this process has ended, such as calls of a store in memory. */
export async function turns(): Promise<void> {
  for (let turn = 0; turn < 50; turn++) await new Promise(setImmediate);
}
