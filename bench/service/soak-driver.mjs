import { setTimeout as pause } from 'node:timers/promises';
import { startEmulator } from '../../dist/emulator.js';
import { fastClock } from '../lib/fast-clock.mjs';
import { answerTasks, argument } from '../lib/tasks.mjs';

/** The emulated service, with all its checks and with faults, and the users of an application, in time that goes faster. */
const { time, users, accessTokenLifetime } = argument;
const LOG_OUT_SHARE = 0.01;
const PAUSE_MS = 20;

/** One after the other, some requests apart. None of them ends a grant: the service lets a refresh token work once more. */
const FAULTS = [
  ['token', { status: 503 }],
  ['token', { reset: true }],
  ['token', { delay: 200 }],
  ['token', { afterEffect: true }],
  ['api', { status: 503 }],
  ['api', { reset: true }],
  ['api', { status: 401, body: { error: 'invalid_token' } }],
];

const service = await startEmulator({
  clock: fastClock(time),
  keepRequests: 0,
  accessTokenLifetime,
  refreshTokenReuse: 'grace',
  users: Array.from({ length: users }, (_none, index) => ({ id: String(index + 1), name: `User ${index + 1}` })),
});
const { clientID, clientSecret } = service.options;

answerTasks({ url: service.authUrl, clientID, clientSecret }, { use });

/** Has all users work with the application until the time is over. */
async function use({ origin, durationMs }) {
  service.register({ clientID, redirectUrls: [`${origin}/callback`] });
  const counted = { requests: 0, logins: 0, failedLogins: 0, logouts: 0, faults: 0, statuses: {} };
  const until = Date.now() + durationMs;
  const working = Array.from({ length: users }, (_none, index) => work(origin, String(index + 1), until, counted));
  await Promise.all([...working, breakThings(until, counted)]);
  return counted;
}

async function work(origin, user, until, counted) {
  let browser = await logIn(origin, user, counted);
  while (Date.now() < until) {
    const answer = await browser(`${origin}/projects`);
    await answer.arrayBuffer();
    counted.requests += 1;
    counted.statuses[answer.status] = (counted.statuses[answer.status] ?? 0) + 1;
    await pause(Math.random() * 2 * PAUSE_MS);
    if (answer.status !== 401 && Math.random() > LOG_OUT_SHARE) continue;
    if (answer.status !== 401) await browser(`${origin}/logout`, { method: 'POST' });
    counted.logouts += 1;
    browser = await logIn(origin, user, counted);
  }
}

/** A login fails while the service does, and is then tried again, as a person would. */
async function logIn(origin, user, counted) {
  for (;;) {
    const { response, fetch } = await service.logIn(globalThis.fetch, { login: `${origin}/login`, user });
    if (response.ok) {
      counted.logins += 1;
      return fetch;
    }
    counted.failedLogins += 1;
    await pause(PAUSE_MS);
  }
}

async function breakThings(until, counted) {
  while (Date.now() < until) {
    const [endpoint, fault] = FAULTS[counted.faults % FAULTS.length];
    service.fail(endpoint, fault);
    counted.faults += 1;
    await pause(100);
  }
}
