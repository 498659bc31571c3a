import { compared, inTurns, measured } from '../lib/rounds.mjs';
import { onStage } from '../lib/stage.mjs';

const CONNECTIONS = 50;

const CONTESTANTS = [
  { name: 'passport-oauth2 by hand, fetch', app: 'hand-written' },
  { name: 'passport-oauth-app', app: 'ours' },
  { name: 'express-openid-connect, fetch', app: 'openid-connect', sessions: 'cookie' },
  { name: 'node:http alone, no login (limit)', app: 'plain-node' },
];

/** `GET /projects` of an application: one request comes in, one goes out to the API. */
export function application({ rounds, share }) {
  return onStage(async (stage) => {
    const service = await stage.service();
    const load = await stage.load();
    const requests = Math.round(1200 * share);
    const entered = [];
    for (const { name, ...options } of CONTESTANTS)
      entered.push(await enter(stage, load, service.ready, requests, name, options));
    await inTurns(entered, 2);
    return {
      title: 'GET /projects of an application that asks the API',
      rows: compared(await inTurns(entered, rounds), CONTESTANTS[0].name),
    };
  });
}

async function enter(stage, load, service, requests, name, options) {
  const server = await stage.app({ service, ...options });
  const { port } = server.ready;
  const cookies = await load.ask('logIns', { port, users: 20 });
  const headers = cookies.map((Cookie) => ({ Cookie }));
  const task = { ports: [port], path: '/projects', headers, requests, connections: CONNECTIONS };
  return { name, measure: () => measured(server, requests, () => load.ask('run', task), 200) };
}
