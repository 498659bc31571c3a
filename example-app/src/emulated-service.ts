import type { StrategyOptions } from 'passport-oauth-app';
import { type Emulator, startEmulator } from 'passport-oauth-app/emulator';
import type { ServiceLog } from './panel/service-log.js';
import { sampleUsers } from './sample-users.js';

/** What may differ of the emulated service. */
export interface EmulatedServiceOptions {
  /** The port that the application listens on. */
  readonly appPort: number;
  /** Learns of each request. */
  readonly log: ServiceLog;
  /** Seconds; short unless given, so that refreshes happen while one watches. */
  readonly tokenLifetime?: number | undefined;
  /** The time in epoch milliseconds. */
  readonly clock?: (() => number) | undefined;
}

/** Starts the emulated service, with this application registered and sample users. */
export async function startService({ appPort, log, tokenLifetime, clock }: EmulatedServiceOptions): Promise<Emulator> {
  const redirectUrls = ['localhost', '127.0.0.1'].map((host) => `http://${host}:${appPort}/callback`);
  const service = await startEmulator({
    applications: [{ clientID: 'example-app', name: 'Example application', redirectUrls }],
    users: sampleUsers,
    accessTokenLifetime: tokenLifetime ?? 75,
    keepRequests: 1000,
    clock,
    log: (entry) => log.note(entry, service.requests),
  });
  return service;
}

/** What the strategy has to know of it. The callback is relative, so that localhost and 127.0.0.1 both work. */
export function strategyOptionsFor(service: Emulator): StrategyOptions {
  return { ...service.options, callbackURL: '/callback', scope: ['project', 'tm'] };
}
