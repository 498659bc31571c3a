import { setTimeout as pause } from 'node:timers/promises';
import type { StrategyOptions } from 'passport-oauth-app';
import { type Emulator, type EmulatorUser, type Fault, startEmulator } from 'passport-oauth-app/emulator';
import { crowdinApp } from 'passport-oauth-app/providers';
import { organizationGrant } from './app.js';
import type { Recorder } from './panel/recorder.js';

/** The settings of the emulated service. */
export interface ServiceOptions {
  /** The port that the application listens on. */
  readonly port: number;
  /** Notes each request. */
  readonly recorder: Recorder;
  /** Seconds; 45 unless given, so that refreshes happen while one watches. */
  readonly tokenLifetime?: number | undefined;
  /** The clock of the application and of the emulated service, in epoch milliseconds. */
  readonly clock?: (() => number) | undefined;
}

/**
 * Something that goes wrong at the service: access tokens are refused, a grant is revoked, or the token endpoint fails.
 * `await-refresh` resolves when the next token request has arrived, `mend` ends all faults.
 */
export type ServiceFault = 'refuse' | 'revoke' | keyof typeof tokenFaults | 'await-refresh' | 'mend';

/** Causes a fault at the service. @param userId The account that is revoked. */
export type BreakService = (fault: ServiceFault, userId: string | undefined) => Promise<void>;

/** Faults of the token endpoint, of one request or for some seconds. `distant` is as over a network. */
const tokenFaults = {
  distant: { delay: 300 },
  slow: { delay: 3_000 },
  outage: { status: 503, headers: { 'Retry-After': '2' }, seconds: 30 },
  'bad-secret': { body: { error: 'invalid_client' }, seconds: 15 },
  'lost-answer': { afterEffect: true },
} satisfies Record<string, Fault & { readonly seconds?: number }>;

/** The accounts: one of a person, two of members of organizations. */
const users = [
  user('1', 'Ada Ferrant', undefined, [
    ['Pocket Garden', 'A mobile app for people who grow things on balconies', 86],
    ['Harbour Museum', 'Audio guide in six languages', 41],
    ['Night Train', 'Booking site, all texts', 100],
    ['Letters to Lena', 'A novel in two volumes', 12],
  ]),
  user('2', 'Ben Okafor', 'acme', [
    ['Acme Storefront', 'Web shop with its mails', 64],
    ['Acme Help Centre', 'Articles for customers', 17],
    ['Rocket Skates 3', 'Manual and safety notes', 93],
  ]),
  user('3', 'Chiyo Tanabe', 'northwind', [['Northwind Fleet', 'Software for drivers', 58]]),
];

type Row = readonly [name: string, description: string, progress: number];

function user(id: string, name: string, domain: string | undefined, rows: readonly Row[]): EmulatorUser {
  const projects = rows.map(([name, description, progress], index) => {
    return { id: Number(id) * 10 + index + 1, name, description, progress };
  });
  return { id, name, projects, ...(domain ? { domain } : {}) };
}

/** Starts the emulated service, with this application registered and sample users. */
export async function startService({ port, recorder, tokenLifetime = 45, clock }: ServiceOptions): Promise<Emulator> {
  const redirectUrls = ['localhost', '127.0.0.1'].flatMap((host) =>
    ['/callback', '/embedded/callback'].map((path) => `http://${host}:${port}${path}`),
  );
  const service = await startEmulator({
    applications: [{ clientID: 'example-app', name: 'Example application', redirectUrls }],
    users,
    accessTokenLifetime: tokenLifetime,
    keepRequests: 1000,
    clock,
    log: (entry) => recorder.note(entry, service.requests),
  });
  return service;
}

/** Returns the options of the strategy. The callback is relative, so that localhost and 127.0.0.1 both work. */
export function strategyOptionsFor(service: Emulator): StrategyOptions {
  // What the Installed event of the service brings: acme has installed the application.
  const { appId, appSecret, domain = '', userId } = service.install({ userId: '2' });
  const applicationGrant = (grantId: string) =>
    grantId === organizationGrant ? crowdinApp({ appId, appSecret, domain, userId }) : undefined;
  return { ...service.options, callbackURL: '/callback', scope: ['project', 'tm'], applicationGrant };
}

/** Returns a function that causes faults at an emulated service. Faults that last end by themselves, or with `mend`. */
export function serviceBreaker(service: Emulator): BreakService {
  const ends = new Set<() => void>();
  return async function breakService(fault, userId = '') {
    if (fault === 'refuse') service.expireAccessTokens();
    else if (fault === 'revoke') service.revoke(userId);
    else if (fault === 'await-refresh') await nextTokenRequest(service);
    else if (fault === 'mend') for (const end of ends) end();
    else {
      const { seconds = 0, ...tokenFault }: Fault & { seconds?: number } = tokenFaults[fault];
      const end = service.fail('token', { times: seconds > 0 ? Number.POSITIVE_INFINITY : 1, ...tokenFault });
      ends.add(end);
      if (seconds > 0) setTimeout(end, seconds * 1000).unref();
    }
  };
}

/** Resolves when the token endpoint receives a request. Polls, because the emulator has no event for it. */
async function nextTokenRequest({ requests }: Emulator): Promise<void> {
  const latest = () => requests.findLast(({ path }) => path === '/oauth/token');
  const before = latest();
  for (let looks = 0; looks < 500 && latest() === before; looks += 1) await pause(10);
}
