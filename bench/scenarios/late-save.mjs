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
  for (const { name, ...options } of CONTESTANTS) {
    const saved = await onStage((stage) => saveLate(stage, options), { firstLifetimeS: FIRST_LIFETIME_S });
    rows.push({ name, ...saved });
  }
  return { title: 'A session saved late, after a rotation', rows };
}

async function saveLate({ service, load, startLoad, app }, options) {
  const { port } = (await app(options)).ready;
  const slowLoad = await startLoad();
  const [Cookie] = await load.ask('logIns', { port, users: 1 });
  const isGood = async (by, path) => {
    const task = { ports: [port], path, headers: [{ Cookie }], requests: 1, connections: 1 };
    return (await by.ask('run', task)).statuses[200] === 1;
  };
  // Begun while the token is good.
  const slow = isGood(slowLoad, `/late?ms=${FIRST_LIFETIME_S * 1000 + SLOW_MS}`);
  await pause(FIRST_LIFETIME_S * 1000 + 200);
  const refreshWorked = await isGood(load, '/projects');
  await slow;
  const loginSurvived = await isGood(load, '/projects');
  return { refreshWorked, loginSurvived, refusedRefreshes: (await service.ask('stats')).refused };
}
