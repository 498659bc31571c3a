import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { noteFigure } from '../fuzz/fuzz.js';
import type { Page } from '../support/browser.js';
import { listen } from '../support/event-log.js';
import { type FaultyServer, startFaultyServer } from '../support/faulty-server.js';
import { grantKeys, stored } from '../support/session-entries.js';
import { threats } from '../support/threats.js';
import { MATRIX, type Row, redirects } from './matrix.js';
import { startTrial, type Trial } from './trial.js';

const LIFETIME_S = 7200;

let elsewhere: FaultyServer;
let trial: Trial;
let secrets = 0;
let outputs = 0;
let cells = 0;
beforeAll(async () => {
  elsewhere = await startFaultyServer();
});
afterEach(async () => {
  await trial.close();
  expect(trial.canaries.findings()).toEqual([]);
  expect(elsewhere.requests).toEqual([]);
  cells += 1;
  secrets += trial.canaries.secrets;
  outputs += trial.canaries.outputs;
});
afterAll(async () => {
  await elsewhere.close();
  noteFigure({ kind: 'faults', rows: rows.length, cells, secrets, outputs });
});

// The port of `elsewhere` is known when the tests run, not when they are named.
const rows: readonly Row[] = [...MATRIX, ...redirects('http://elsewhere.invalid')];
const troubled = (row: Row): Row => redirects(elsewhere.origin).find(({ fault }) => fault === row.fault) ?? row;
const outcome = ({ status, text, json }: Page, requests: number) => {
  const name: unknown = text.startsWith('{') ? json().name : undefined;
  return [status, name ?? '', requests];
};
const byFault = rows.map((row) => [row.fault, row] as const);

async function loggedIn(): Promise<void> {
  trial = await startTrial();
  expect((await trial.visit(await trial.begin())).status).toBe(302);
}

/** Once the service is well, and the moment that a grant is left alone for is over, the user goes on without a login. */
async function expectRecovery(row: Row, isGrantEnded = row.endsGrant === true): Promise<void> {
  const before = trial.logins();
  await trial.heal();
  trial.clock.advance(31);
  const page = await trial.visit('/projects');
  expect(page.status).toBe(isGrantEnded ? 302 : 200);
  expect(grantKeys(trial.world)).toHaveLength(isGrantEnded ? 0 : 1);
  expect(trial.logins()).toBe(before);
}

describe('at the callback of a login', threats(26, 30, 31, 32, 37), () => {
  test.each(byFault)('%s: nobody is logged in, nothing is stored, and a new login works', async (_fault, row) => {
    trial = await startTrial();
    const callback = await trial.begin();
    const requests = trial.strike('token', troubled(row));
    const page = await trial.visit(callback);
    expect(outcome(page, requests())).toEqual(row.login);
    expect(stored(trial.world)).toEqual([]);
    expect((await trial.visit('/whoami')).json()).toMatchObject({ authorized: false });
    await trial.heal();
    expect((await trial.visit(callback)).status).toBe(403);
    expect((await trial.visit(await trial.begin())).status).toBe(302);
    expect((await trial.visit('/projects')).status).toBe(200);
  });
});

describe('at a refresh that a request waits for', () => {
  test.each(byFault)(
    '%s: a page gets the error or goes to the login, and the grant is kept unless the service says no',
    async (_fault, row) => {
      await loggedIn();
      trial.clock.advance(LIFETIME_S);
      const requests = trial.strike('token', troubled(row));
      expect(outcome(await trial.visit('/projects'), requests())).toEqual(row.refresh);
      await expectRecovery(row);
    },
  );
});

describe('at a refresh ahead of time', () => {
  test.each(byFault)('%s: requests use the token that is still valid', async (_fault, row) => {
    await loggedIn();
    trial.clock.advance(LIFETIME_S - 120);
    const requests = trial.strike('token', troubled(row));
    const ended = trial.refreshEnds();
    expect((await trial.visit('/projects')).status).toBe(200);
    await ended;
    expect(requests()).toBe(row.ahead);
    if (!row.endsGrant) expect((await trial.visit('/projects')).status).toBe(200);
    await expectRecovery(row);
    trial.clock.advance(LIFETIME_S);
    await expectRecovery(row);
  });
});

describe('at a logout, at the revocation endpoint', threats(84), () => {
  test.each(byFault)('%s: the logout is done, and the event tells what came of it', async (_fault, row) => {
    await loggedIn();
    const requests = trial.strike('revoke', troubled(row));
    const log = listen('grant');
    const revocation = trial.revocationEnds();
    const page = await trial.visit('/logout', { method: 'POST' });
    expect([page.status, grantKeys(trial.world)]).toEqual([200, []]);
    expect((await trial.visit('/whoami')).json()).toMatchObject({ authorized: false });
    await trial.world.strategy.close();
    await revocation;
    expect(log.values('grant', 'action')).toEqual(['deleted', row.isRevoked ? 'revoked' : 'revocation-failed']);
    expect(requests()).toBeLessThanOrEqual(4);
    await trial.heal();
  });
});

describe('at a call of the API', () => {
  test.each(byFault)('%s: the caller gets the error, and the grant is kept', async (_fault, row) => {
    await loggedIn();
    const tokenRequests = trial.gateway.requests('token').length;
    const requests = trial.strike('api', troubled(row));
    expect(outcome(await trial.visit('/projects'), requests())).toEqual(row.api);
    expect(trial.gateway.requests('token')).toHaveLength(tokenRequests + (row.renewals ?? 0));
    await expectRecovery(row, false);
  });
});
