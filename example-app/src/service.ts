import type { StrategyOptions } from 'passport-oauth-app';
import {
  type Emulator,
  type EmulatorUser,
  type Installation,
  type Registration,
  startEmulator,
} from 'passport-oauth-app/emulator';
import { crowdinApp } from 'passport-oauth-app/providers';
import { organizationGrant } from './app.js';
import type { Recorder } from './panel/recorder.js';
import { usualPort } from './server.js';

/** The settings of the emulated service. */
export interface ServiceOptions {
  /** Seconds; 45 unless given, so that refreshes happen while one watches. */
  readonly tokenLifetime?: number | undefined;
  /** The clock of the application and of the emulated service, in epoch milliseconds. */
  readonly clock?: (() => number) | undefined;
}

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

/** The application as the service knows it. Localhost and 127.0.0.1 both work. @param port That it listens on. */
export function registrationAt(port: number): Registration {
  const redirectUrls = ['localhost', '127.0.0.1'].flatMap((host) =>
    ['/callback', '/embedded/callback'].map((path) => `http://${host}:${port}${path}`),
  );
  return { clientID: 'example-app', name: 'Example application', redirectUrls };
}

/** Starts the emulated service, with this application registered and sample users. The recorder notes each request. */
export async function startService(port: number | undefined, recorder: Recorder, options: ServiceOptions = {}) {
  const { tokenLifetime = 45, clock = Date.now } = options;
  const service: Emulator = await startEmulator({
    // Where the port is not known yet, it is registered again later.
    applications: [registrationAt(port || usualPort)],
    users,
    accessTokenLifetime: tokenLifetime,
    keepRequests: 1000,
    clock,
    log: (entry) => recorder.note(entry, clock(), service.requests),
  });
  return service;
}

/** Returns the options of the strategy. The callback is relative, so that localhost and 127.0.0.1 both work. */
export function strategyOptionsFor(service: Emulator): StrategyOptions {
  const applicationGrant = grantOfOrganization(service.install({ userId: '2' }));
  return { ...service.options, callbackURL: '/callback', scope: 'project tm', applicationGrant };
}

/** Returns the option `applicationGrant`. @param installation What the Installed event brings: acme has installed the application. */
export function grantOfOrganization({ appId, appSecret, domain = '', userId }: Installation) {
  return (grantId: string) =>
    grantId === organizationGrant ? crowdinApp({ appId, appSecret, domain, userId }) : undefined;
}
