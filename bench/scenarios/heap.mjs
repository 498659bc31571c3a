import { onStage } from '../lib/stage.mjs';
import { interval } from '../lib/statistics.mjs';

const CONTESTANTS = [
  { name: 'passport-oauth-app', app: 'ours' },
  { name: 'passport-oauth-app, cache: false', app: 'ours', cache: false },
  { name: 'passport-oauth2 by hand', app: 'hand-written' },
  { name: 'floor', app: 'floor' },
  { name: 'bare', app: 'bare' },
];

const SESSIONS = 10_000;
/** Sessions that come first: the code is compiled, the pools are filled. */
const WARM_UPS = 1_000;
const CONNECTIONS = 8;
/** Access token and refresh token together. */
const TOKEN_CHARS = 1_600;
const TIMES = 2;

/** What each of ten thousand sessions with a grant holds in memory, after a collection. */
export async function heap({ quick }) {
  const sessions = quick ? SESSIONS / 10 : SESSIONS;
  const rows = [];
  for (const { name, ...options } of CONTESTANTS) {
    const bytes = [];
    // Memory is no matter of time: they may run at once.
    const growing = Array.from({ length: TIMES }, () => growthOf(options, sessions));
    for (const growth of await Promise.all(growing)) bytes.push(growth / sessions);
    rows.push({ name, bytes: interval(bytes) });
  }
  return { title: `Heap of each of ${sessions.toLocaleString('en')} sessions`, tokenChars: TOKEN_CHARS, rows };
}

function growthOf(options, sessions) {
  return onStage(async (stage) => {
    const service = await stage.service({ tokenChars: TOKEN_CHARS });
    const load = await stage.load();
    const server = await stage.appWithGc({ service: service.ready, ...options });
    const logIn = (requests) =>
      load.ask('runLogIns', { port: server.ready.port, requests, connections: CONNECTIONS, users: requests });
    await logIn(Math.min(WARM_UPS, sessions / 4));
    const before = await server.ask('memory');
    await logIn(sessions);
    const after = await server.ask('memory');
    return after.heapBytes - before.heapBytes;
  });
}
