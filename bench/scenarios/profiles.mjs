import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { otherCore } from '../lib/cores.mjs';
import { startRedis } from '../lib/redis.mjs';
import { onStage } from '../lib/stage.mjs';
import { measured } from '../lib/starts.mjs';
import { flameGraph } from '../report/flame-graph.mjs';
import { ownFunctions, readProfile, sharesOf } from '../report/profile.mjs';

const OURS = 'passport-oauth-app';

/** What is profiled, and beside whom. `picture`: the flame graph of ours. `requests`: some seconds of them. */
const PROFILES = [
  {
    name: 'request',
    title: 'A logged-in request, GET /',
    picture: 'flame-request.svg',
    requests: 8_000,
    contestants: { bare: { app: 'bare' }, floor: { app: 'floor' }, [OURS]: { app: 'ours' } },
    enter: enterRequests('/'),
  },
  {
    name: 'redis',
    title: 'A logged-in request over Redis, with cache: false',
    requests: 8_000,
    contestants: { bare: { app: 'bare', redis: true }, [OURS]: { app: 'ours', redis: true, cache: false } },
    enter: enterRequests('/'),
  },
  {
    name: 'projects',
    title: 'GET /projects, with one call of the API',
    requests: 6_000,
    contestants: { floor: { app: 'floor' }, 'by hand': { app: 'hand-written' }, [OURS]: { app: 'ours' } },
    enter: enterRequests('/projects'),
  },
  {
    name: 'login',
    title: 'A whole login: the login route and the callback',
    picture: 'flame-login.svg',
    requests: 3_000,
    contestants: { floor: { app: 'floor' }, 'by hand': { app: 'hand-written' }, [OURS]: { app: 'ours' } },
    enter: enterLogins,
  },
  {
    name: 'refresh',
    title: 'A request with an expired token: one refresh',
    picture: 'flame-refresh.svg',
    requests: 5_000,
    contestants: { [OURS]: { app: 'keyed' } },
    enter: enterRefreshes,
  },
  {
    name: 'api',
    title: 'A call of the API, 25 projects',
    requests: 20_000,
    contestants: {
      'bare dispatch': { client: 'undici-dispatch' },
      'undici.request': { client: 'undici-request' },
      [OURS]: { client: 'ours' },
    },
    enter: enterCalls,
  },
  {
    name: 'middleware',
    title: 'The middleware alone, grant in the cache',
    requests: 2_000_000,
    contestants: { [OURS]: {} },
    enter: enterPasses,
  },
];

/** Where the CPU time goes, by function (flame graphs) and by package. Writes the flame graphs to `pictures`. */
export async function profiles({ share, pictures }) {
  const folder = mkdtempSync(join(tmpdir(), 'bench-profiles-'));
  try {
    const rows = [];
    for (const { name, title, picture, contestants, enter, requests } of PROFILES) {
      const parts = {};
      for (const [contestant, program] of Object.entries(contestants)) {
        const file = join(folder, `${name}-${readdirSync(folder).length}.cpuprofile`);
        const cpuUs = await record(enter, program, Math.round(requests * share), file);
        const profile = readProfile(file);
        parts[contestant] = { cpuUs, shares: sharesOf(profile), own: ownFunctions(profile) };
        if (contestant === OURS && picture !== undefined && pictures !== undefined)
          writeFileSync(join(pictures, picture), flameGraph(`${title} (CPU time)`, profile));
      }
      rows.push({ name, title, picture, parts });
    }
    return { title: 'Where the time goes', rows };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** First without the profiler, which makes the code warm and says what a request costs; then with it. */
function record(enter, program, requests, file) {
  return onStage(
    async (stage) => {
      const { process, play } = await enter(stage, program, requests);
      await play();
      const { cpuUs } = await measured(process, requests, play);
      await process.ask('startProfile');
      await play();
      await process.ask('stopProfile', { file });
      return cpuUs;
    },
    { pinned: true },
  );
}

function enterRequests(path) {
  return async (stage, { redis, ...options }, requests) => {
    const service = await stage.service();
    const load = await stage.load();
    const shared = redis ? { redisUrl: (await stage.keep(startRedis({ core: otherCore }))).url } : {};
    const process = await stage.app({ ...options, ...shared, service: service.ready });
    const { port } = process.ready;
    const headers = (await load.ask('logIns', { port, users: 20 })).map((Cookie) => ({ Cookie }));
    const task = { ports: [port], path, headers, requests, connections: 32 };
    return { process, play: () => load.ask('run', task) };
  };
}

async function enterLogins(stage, options, requests) {
  const service = await stage.service();
  const load = await stage.load();
  const process = await stage.app({ ...options, service: service.ready });
  const task = { port: process.ready.port, requests, connections: 8 };
  return { process, play: () => load.ask('runLogIns', task) };
}

/** Each request is of another user, whose token has expired long ago. */
async function enterRefreshes(stage, options, requests) {
  const service = await stage.service();
  const load = await stage.load();
  const process = await stage.app({ ...options, service: service.ready });
  const total = requests * 3;
  await service.ask('seed', total);
  await process.ask('seed', { from: 1, to: total, expired: true });
  let first = 1;
  const play = async () => {
    const headers = Array.from({ length: requests }, (_none, index) => ({ 'x-user': String(first + index) }));
    first += requests;
    return await load.ask('run', { ports: [process.ready.port], path: '/', headers, requests, connections: 32 });
  };
  return { process, play };
}

async function enterCalls(stage, { client }, requests) {
  const projects = 25;
  const service = await stage.service({ projects });
  const process = await stage.measured('clients/loop.mjs', { client, service: service.ready, projects });
  return { process, play: () => process.ask('run', { requests, concurrency: 50 }) };
}

async function enterPasses(stage, _options, requests) {
  const service = await stage.service();
  const process = await stage.measured('alone/middleware.mjs', { service: service.ready });
  return { process, play: () => process.ask('passes', requests) };
}
