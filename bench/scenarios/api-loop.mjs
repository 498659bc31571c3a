import { compared, fromTheStart, measured } from '../lib/starts.mjs';

const CONCURRENCY = 50;

/** How many projects an answer lists, about 400 bytes each; and how many calls one round makes. */
const SIZES = [
  { projects: 1, requests: 1500 },
  { projects: 25, requests: 1000 },
  { projects: 500, requests: 100 },
];

const CONTESTANTS = [
  { name: 'undici dispatch, own handler', client: 'undici-dispatch' },
  { name: 'passport-oauth-app', client: 'ours' },
  { name: 'undici.request', client: 'undici-request' },
];

/** Slower ones, at one size, and with fewer calls in a round. */
const OTHERS_AT = 25;
const OTHERS_REQUESTS = 150;
const OTHERS = [
  { name: 'fetch', client: 'fetch' },
  { name: 'axios', client: 'axios' },
  { name: 'official SDK', client: 'official-sdk' },
];

/** A loop of API calls, against the bare dispatcher and what one would call the API with otherwise. */
export async function apiLoop(settings) {
  const plays = await fromTheStart(settings, async (stage) => {
    const entered = await Promise.all(SIZES.map((size) => enterSize(stage, size)));
    return entered.flat();
  });
  const rows = SIZES.flatMap(({ projects }) => {
    const ofSize = Object.entries(plays)
      .filter(([name]) => name.startsWith(`${projects} `))
      .map(([name, own]) => [name.slice(name.indexOf(' ') + 1), own]);
    return compared(Object.fromEntries(ofSize), CONTESTANTS[0].name).map((row) => ({ projects, ...row }));
  });
  return { title: `A loop of GET /api/v2/projects, ${CONCURRENCY} at once`, rows };
}

async function enterSize(stage, { projects, requests }) {
  const service = await stage.service({ projects });
  const enter = async ({ name, client }, times) => {
    const child = await stage.measured('clients/loop.mjs', { client, service: service.ready, projects });
    const task = { requests: times, concurrency: CONCURRENCY };
    return { name: `${projects} ${name}`, measure: () => measured(child, times, () => child.ask('run', task), 200) };
  };
  return await Promise.all([
    ...CONTESTANTS.map((one) => enter(one, requests)),
    ...(projects === OTHERS_AT ? OTHERS.map((one) => enter(one, OTHERS_REQUESTS)) : []),
  ]);
}
