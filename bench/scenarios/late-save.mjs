import { setTimeout as pause } from 'node:timers/promises';
import { onStage } from '../lib/stage.mjs';

/** A slow request begins, its session with it; a second one has the token refreshed; then the slow one saves its session. */
const SLOW_MS = 1_000;
const FIRST_LIFETIME_S = 2;

const CONTESTANTS = [
  { name: 'passport-oauth-app', app: 'ours' },
  { name: 'passport-oauth2 by hand', app: 'hand-written' },
  { name: 'passport-oauth2 by hand, single-flight', app: 'hand-written', singleFlight: true },
  { name: 'express-openid-connect, memory', app: 'openid-connect' },
];

/** Whether a session that is saved late brings a dead refresh token back, and so loses the login. */
export async function lateSave() {
  const rows = [];
  for (const { name, ...options } of CONTESTANTS) rows.push({ name, ...(await saveLate(options)) });
  return { title: 'A session saved late, after a rotation', rows };
}

function saveLate(options) {
  return onStage(async (stage) => {
    const service = await stage.service({ firstLifetimeS: FIRST_LIFETIME_S });
    const [load, slowLoad] = await Promise.all([stage.load(), stage.load()]);
    const { ready } = await stage.app({ service: service.ready, ...options });
    const [Cookie] = await load.ask('logIns', { port: ready.port, users: 1 });
    const get = (by, path) =>
      by.ask('run', { ports: [ready.port], path, headers: [{ Cookie }], requests: 1, connections: 1 });
    // Begun while the token is good.
    const slow = get(slowLoad, `/late?ms=${FIRST_LIFETIME_S * 1000 + SLOW_MS}`);
    await pause(FIRST_LIFETIME_S * 1000 + 200);
    const refreshing = await get(load, '/projects');
    await slow;
    const next = await get(load, '/projects');
    const { refused } = await service.ask('stats');
    const isGood = (answer) => answer.statuses[200] === 1;
    return { refreshWorked: isGood(refreshing), loginSurvived: isGood(next), refusedRefreshes: refused };
  });
}
