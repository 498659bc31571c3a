import { compared, fromTheStart, measured } from '../lib/starts.mjs';

const CONCURRENCY = 50;

const DISPATCH = 'undici dispatch, own handler';
const FASTEST = [
  { name: DISPATCH, client: 'undiciDispatch' },
  { name: 'passport-oauth-app', client: 'ours' },
  { name: 'undici.request', client: 'undiciRequest' },
];
/** Slower ones: at one size, and with fewer calls in a round. */
const OTHERS = [
  { name: 'fetch', client: 'builtInFetch', requests: 150 },
  { name: 'axios', client: 'axios', requests: 150 },
  { name: 'official SDK', client: 'officialSdk', requests: 150 },
];

/** How many projects an answer lists, about 400 bytes each; and how many calls one round makes. */
const SIZES = [
  { projects: 1, requests: 1500, contestants: FASTEST },
  { projects: 25, requests: 1000, contestants: [...FASTEST, ...OTHERS] },
  { projects: 500, requests: 100, contestants: FASTEST },
];

/** A loop of API calls, against the bare dispatcher and what one would call the API with otherwise. */
export async function apiLoop(settings) {
  const plays = await fromTheStart(settings, async (stage) => (await Promise.all(SIZES.map(enterSize(stage)))).flat());
  const rows = SIZES.flatMap(({ projects, contestants }) => {
    const own = contestants.map(({ name }) => [name, plays[`${projects} ${name}`]]);
    return compared(Object.fromEntries(own), DISPATCH).map((row) => ({ projects, ...row }));
  });
  return { title: `A loop of GET /api/v2/projects, ${CONCURRENCY} at once`, rows };
}

function enterSize(stage) {
  return async ({ projects, contestants, ...size }) => {
    const { ready: service } = await stage.startService({ projects });
    const enter = async ({ name, client, requests = size.requests }) => {
      const child = await stage.measured('clients/loop.mjs', { client, service, projects });
      const run = () => child.ask('run', { requests, concurrency: CONCURRENCY });
      return { name: `${projects} ${name}`, measure: () => measured(child, requests, run, 200) };
    };
    return await Promise.all(contestants.map(enter));
  };
}
