import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { heldBy } from '../lib/heap-snapshot.mjs';
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

/** The package keeps grants beside the sessions, in the same store, under keys of its own. */
const SESSIONS_HELD = 'MemoryStore.sessions';
const RECORDS_HELD = 'MemoryStore.sessions, records';

/** What each of ten thousand sessions with a grant holds in memory, after a collection; and which object holds it. */
export async function heap({ quick }) {
  const sessions = quick ? SESSIONS / 10 : SESSIONS;
  const rows = [];
  for (const { name, ...options } of CONTESTANTS) {
    // Memory is no matter of time: they may run at once. One of them says where it lies.
    const growing = Array.from({ length: TIMES }, (_none, time) => growthOf(options, sessions, time === 0));
    const grown = await Promise.all(growing);
    const bytes = grown.map((one) => one.bytes / sessions);
    rows.push({ name, bytes: interval(bytes), holders: grown[0].holders });
  }
  return { title: `Heap of each of ${sessions.toLocaleString('en')} sessions`, tokenChars: TOKEN_CHARS, rows };
}

function growthOf(options, sessions, isTakenApart) {
  return onStage(async (stage) => {
    const service = await stage.service({ tokenChars: TOKEN_CHARS });
    const load = await stage.load();
    const server = await stage.appWithGc({ service: service.ready, ...options });
    const logIn = (requests) =>
      load.ask('runLogIns', { port: server.ready.port, requests, connections: CONNECTIONS, users: requests });
    const look = async () => ({
      ...(await server.ask('memory')),
      holders: isTakenApart ? await holdersOf(server, sessions) : new Map(),
    });
    await logIn(Math.min(WARM_UPS, sessions / 4));
    const before = await look();
    await logIn(sessions);
    const after = await look();
    return {
      bytes: after.heapBytes - before.heapBytes,
      holders: growthOfHolders(before.holders, after.holders, sessions),
    };
  });
}

async function holdersOf(server, sessions) {
  const folder = mkdtempSync(join(tmpdir(), 'bench-heap-'));
  try {
    const file = join(folder, 'one.heapsnapshot');
    await server.ask('snapshot', { file });
    return heldBy(file, {
      few: sessions / 20,
      entryOf: (holder, key) => (holder === SESSIONS_HELD && key.startsWith('oauth-app') ? RECORDS_HELD : holder),
    });
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** @returns {{ holder: string, bytes: number, stringBytes: number }[]} for a session, those that matter */
function growthOfHolders(before, after, sessions) {
  return [...after]
    .map(([holder, { bytes, stringBytes }]) => ({
      holder,
      bytes: (bytes - (before.get(holder)?.bytes ?? 0)) / sessions,
      stringBytes: (stringBytes - (before.get(holder)?.stringBytes ?? 0)) / sessions,
    }))
    .filter(({ holder, bytes }) => holder !== '' && bytes >= 24)
    .sort((a, b) => b.bytes - a.bytes);
}
