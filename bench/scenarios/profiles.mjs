import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { CRYPTO } from '../lib/call-counts.mjs';
import { otherCore } from '../lib/cores.mjs';
import { startRedis } from '../lib/redis.mjs';
import { onStage } from '../lib/stage.mjs';
import { inTurns, measured } from '../lib/starts.mjs';
import { mean } from '../lib/statistics.mjs';
import { flameGraph } from '../report/flame-graph.mjs';
import {
  differingFunctions,
  mergedProfiles,
  ownFunctions,
  readProfile,
  sharesOf,
  shareWithin,
} from '../report/profile.mjs';

const OURS = 'passport-oauth-app';
/** Each with new processes, as in the scenarios whose figures the profiles explain. */
const STARTS = 2;
/** Of one start, and of each kind: to become warm, without the profiler, and with it. */
const ROUNDS = 3;
/** Logins whose calls are counted. */
const COUNTED = 100;

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
    redis: true,
    contestants: { bare: { app: 'bare' }, [OURS]: { app: 'ours', cache: false } },
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
    requests: 3_600,
    counts: true,
    contestants: { floor: { app: 'floor' }, 'by hand': { app: 'hand-written', forms: true }, [OURS]: { app: 'ours' } },
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
    name: 'api-1',
    title: 'A call of the API, 1 project',
    requests: 40_000,
    projects: 1,
    contestants: {
      'bare dispatch': { client: 'undici-dispatch' },
      'undici.request': { client: 'undici-request' },
      [OURS]: { client: 'ours' },
    },
    enter: enterCalls,
  },
  {
    name: 'api',
    title: 'A call of the API, 25 projects',
    requests: 20_000,
    projects: 25,
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
export async function profiles({ share, quick, pictures }) {
  const folder = mkdtempSync(join(tmpdir(), 'bench-profiles-'));
  try {
    const rows = [];
    for (const profile of PROFILES) {
      const { name, title, picture } = profile;
      const starts = quick ? 1 : STARTS;
      const recorded = await record(profile, starts, Math.ceil((profile.requests * share) / (starts * ROUNDS)), folder);
      const parts = Object.fromEntries(
        Object.entries(recorded).map(([contestant, one]) => [contestant, summary(profile, one, recorded[OURS])]),
      );
      if (picture !== undefined && pictures !== undefined)
        writeFileSync(join(pictures, picture), flameGraph(`${title} (CPU time)`, recorded[OURS].profile));
      rows.push({ name, title, picture, parts, ...(profile.counts ? { calls: await callsOf(profile) } : {}) });
    }
    return { title: 'Where the time goes', rows };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** The figures of one contestant, and which functions of ours take more or less than it. */
function summary({ counts }, one, ours) {
  const { profile, ...figures } = one;
  const cryptoShares = () => Object.fromEntries(CRYPTO.map(({ name, files }) => [name, shareWithin(profile, files)]));
  return {
    ...figures,
    shares: sharesOf(profile),
    own: ownFunctions(profile),
    ...(one === ours ? {} : { differing: differingFunctions(ours, one) }),
    ...(counts ? { crypto: cryptoShares() } : {}),
  };
}

/**
 * All contestants of a profile, each start with new processes that take turns: they become warm, then it is measured what a
 * request costs, and at last where.
 */
async function record(profile, starts, requests, folder) {
  const plays = {};
  for (let start = 0; start < starts; start += 1) {
    const samples = await onStage((stage) => recordOnce(stage, profile, requests, folder), { pinned: true });
    for (const [name, own] of Object.entries(samples)) plays[name] = [...(plays[name] ?? []), own];
  }
  return Object.fromEntries(
    Object.entries(plays).map(([name, own]) => {
      const of = (figure) => mean(own.map((play) => play[figure]));
      const figures = { cpuUs: of('cpuUs'), helpersUs: of('helpersUs'), pausesUs: of('pausesUs'), bytes: of('bytes') };
      return [name, { ...figures, profile: mergedProfiles(own.map(({ frame }) => frame)) }];
    }),
  );
}

async function recordOnce(stage, profile, requests, folder) {
  const running = (await enterAll(stage, profile, requests)).map((one) => ({
    ...one,
    measure: () => measured(one.process, requests, one.play),
  }));
  await inTurns(running, ROUNDS);
  for (const { process } of running) await process.ask('startGc');
  const rounds = await inTurns(running, ROUNDS);
  const results = {};
  for (const { name, process, play } of running) {
    const { pauseUs, allocatedBytes } = await process.ask('stopGc');
    const file = join(folder, 'one.cpuprofile');
    await process.ask('startProfile');
    for (let round = 0; round < ROUNDS; round += 1) await play();
    await process.ask('stopProfile', { file });
    results[name] = {
      cpuUs: mean(rounds[name].map(({ cpuUs }) => cpuUs)),
      helpersUs: mean(rounds[name].map(({ helpersUs }) => helpersUs)),
      pausesUs: pauseUs / (ROUNDS * requests),
      bytes: allocatedBytes / (ROUNDS * requests),
      frame: readProfile(file),
    };
  }
  return results;
}

/** @param {object} [more] options of all contestants */
async function enterAll(stage, { contestants, enter, projects, redis }, requests, more = {}) {
  const service = await stage.service({ projects });
  const shared = {
    stage,
    projects,
    service: service.ready,
    seedService: (grants) => service.ask('seed', grants),
    load: await stage.load(),
  };
  const store = redis ? { redisUrl: (await stage.keep(startRedis({ core: otherCore }))).url } : {};
  return await Promise.all(
    Object.entries(contestants).map(async ([name, options]) => ({
      name,
      ...(await enter(shared, { ...options, ...store, ...more }, requests)),
    })),
  );
}

/** How often each contestant calls what is counted, for one request. */
async function callsOf(profile) {
  return await onStage(async (stage) => {
    const calls = {};
    for (const { name, process, play } of await enterAll(stage, profile, COUNTED, { counts: true })) {
      await play();
      await process.ask('takeCounts');
      await play();
      const counts = await process.ask('takeCounts');
      calls[name] = Object.fromEntries(Object.entries(counts).map(([call, times]) => [call, times / COUNTED]));
    }
    return calls;
  });
}

function enterRequests(path) {
  return async ({ stage, service, load }, options, requests) => {
    const process = await stage.app({ ...options, service });
    const { port } = process.ready;
    const headers = (await load.ask('logIns', { port, users: 20 })).map((Cookie) => ({ Cookie }));
    const task = { ports: [port], path, headers, requests, connections: 32 };
    return { process, play: () => load.ask('run', task) };
  };
}

async function enterLogins({ stage, service, load }, options, requests) {
  const process = await stage.app({ ...options, service });
  const task = { port: process.ready.port, requests, connections: 8 };
  return { process, play: () => load.ask('runLogIns', task) };
}

/** Each request is of another user, whose token has expired long ago. */
async function enterRefreshes({ stage, service, seedService, load }, options, requests) {
  const process = await stage.app({ ...options, service });
  const total = requests * ROUNDS * 3;
  await seedService(total);
  await process.ask('seed', { from: 1, to: total, expired: true });
  let first = 1;
  const play = async () => {
    const headers = Array.from({ length: requests }, (_none, index) => ({ 'x-user': String(first + index) }));
    first += requests;
    return await load.ask('run', { ports: [process.ready.port], path: '/', headers, requests, connections: 32 });
  };
  return { process, play };
}

async function enterCalls({ stage, service, projects }, { client }, requests) {
  const process = await stage.measured('clients/loop.mjs', { client, service, projects });
  return { process, play: () => process.ask('run', { requests, concurrency: 50 }) };
}

async function enterPasses({ stage, service }, _options, requests) {
  const process = await stage.measured('alone/middleware.mjs', { service });
  return { process, play: () => process.ask('passes', requests) };
}
