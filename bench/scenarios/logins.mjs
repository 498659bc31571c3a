import { compared, inTurns, measured } from '../lib/rounds.mjs';
import { onStage } from '../lib/stage.mjs';

const CONNECTIONS = 10;

const CONTESTANTS = [
  { name: 'passport-oauth2 by hand', app: 'hand-written' },
  { name: 'passport-oauth-app', app: 'ours' },
  { name: 'express-openid-connect', app: 'openid-connect', sessions: 'cookie' },
];

/** Whole logins: the login route, the callback, the code exchange, the session. */
export function logins({ rounds, share }) {
  return onStage(async (stage) => {
    const service = await stage.service();
    const load = await stage.load();
    const requests = Math.round(400 * share);
    const entered = [];
    for (const { name, ...options } of CONTESTANTS) {
      const server = await stage.app({ service: service.ready, ...options });
      const task = { port: server.ready.port, requests, connections: CONNECTIONS };
      entered.push({ name, measure: () => measured(server, requests, () => load.ask('runLogIns', task)) });
    }
    await inTurns(entered, 2);
    return { title: 'Whole logins', rows: compared(await inTurns(entered, rounds), CONTESTANTS[0].name) };
  });
}
