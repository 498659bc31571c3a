import type { StrategyOptions } from 'passport-oauth-app';
import { type Emulator, startEmulator } from 'passport-oauth-app/emulator';
import type { Recorder } from './panel/recorder.js';
import { sampleUsers } from './sample-users.js';

/** The settings of the emulated service. */
export interface EmulatedServiceOptions {
  /** The port that the application listens on. */
  readonly appPort: number;
  /** Notes each request. */
  readonly recorder: Recorder;
  /** Seconds; 45 unless given, so that refreshes happen while one watches. */
  readonly tokenLifetime?: number | undefined;
  /** The time in epoch milliseconds. */
  readonly clock?: (() => number) | undefined;
}

/** Starts the emulated service, with this application registered and sample users. */
export async function startService({
  appPort,
  recorder,
  tokenLifetime,
  clock,
}: EmulatedServiceOptions): Promise<Emulator> {
  const redirectUrls = ['localhost', '127.0.0.1'].flatMap((host) =>
    ['/callback', '/embedded/callback'].map((path) => `http://${host}:${appPort}${path}`),
  );
  const service = await startEmulator({
    applications: [{ clientID: 'example-app', name: 'Example application', redirectUrls }],
    users: sampleUsers,
    accessTokenLifetime: tokenLifetime ?? 45,
    keepRequests: 1000,
    clock,
    log: (entry) => recorder.note(entry, service.requests),
  });
  return service;
}

/** Returns the options of the strategy. The callback is relative, so that localhost and 127.0.0.1 both work. */
export function strategyOptionsFor(service: Emulator): StrategyOptions {
  return { ...service.options, callbackURL: '/callback', scope: ['project', 'tm'] };
}
