import { compared, fromTheStart, measured } from '../lib/starts.mjs';

const AT_ONCE = 8;
const REQUESTS = 200;

/** The cheaper one: `http.request` takes less than fetch. */
const HAND_WRITTEN = 'passport-oauth2 by hand, its own exchange';
const CONTESTANTS = [
  { name: 'floor', app: 'floor' },
  { name: 'floor, once more', app: 'floor' },
  { name: 'passport-oauth-app', app: 'ours' },
  { name: HAND_WRITTEN, app: 'hand-written', forms: true },
  { name: 'passport-oauth2 by hand, fetch', app: 'hand-written' },
  { name: 'express-openid-connect', app: 'openid-connect', sessions: 'cookie' },
];

/** Whole logins, eight at a time: the login route, the callback, the code exchange, the session. */
export async function logins(settings) {
  const plays = await fromTheStart(settings, ({ app, load }) => {
    const enter = async ({ name, ...options }) => {
      const server = await app(options);
      const task = { port: server.ready.port, requests: REQUESTS, connections: AT_ONCE };
      return { name, measure: () => measured(server, REQUESTS, () => load.ask('runLogIns', task)) };
    };
    return Promise.all(CONTESTANTS.map(enter));
  });
  const byHand = compared(plays, HAND_WRITTEN);
  const rows = compared(plays, CONTESTANTS[0].name);
  for (const [index, row] of rows.entries()) row.cpuToHandWritten = byHand[index].cpuRatio;
  return { title: `Whole logins, ${AT_ONCE} at a time`, rows };
}
