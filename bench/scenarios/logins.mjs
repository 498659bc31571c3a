import { compared, fromTheStart, measured } from '../lib/starts.mjs';

const AT_ONCE = 8;
const REQUESTS = 200;

const HAND_WRITTEN = 'passport-oauth2 by hand';
const CONTESTANTS = [
  { name: 'floor', app: 'floor' },
  { name: 'floor, once more', app: 'floor' },
  { name: 'passport-oauth-app', app: 'ours' },
  { name: HAND_WRITTEN, app: 'hand-written' },
  { name: 'express-openid-connect', app: 'openid-connect', sessions: 'cookie' },
];

/** Whole logins, eight at a time: the login route, the callback, the code exchange, the session. */
export async function logins(settings) {
  const plays = await fromTheStart(settings, async (stage) => {
    const service = await stage.service();
    const load = await stage.load();
    return await Promise.all(CONTESTANTS.map((one) => enter(stage, load, service.ready, one)));
  });
  const byHand = compared(plays, HAND_WRITTEN);
  const rows = compared(plays, CONTESTANTS[0].name).map((row) => ({
    ...row,
    cpuToHandWritten: byHand.find(({ name }) => name === row.name).cpuRatio,
  }));
  return { title: `Whole logins, ${AT_ONCE} at a time`, rows };
}

async function enter(stage, load, service, { name, ...options }) {
  const server = await stage.app({ service, ...options });
  const task = { port: server.ready.port, requests: REQUESTS, connections: AT_ONCE };
  return { name, measure: () => measured(server, REQUESTS, () => load.ask('runLogIns', task)) };
}
