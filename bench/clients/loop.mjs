import { performance } from 'node:perf_hooks';
import { quantile } from '../lib/statistics.mjs';
import { answerTasks, argument } from '../lib/tasks.mjs';

/** The process of one API client: `GET /api/v2/projects`, so many at once. Its argument says which client. */
const { client, service, projects } = argument;
const { createClient } = await import(`./${client}.mjs`);
const getProjects = await createClient({ baseUrl: service.url, service });

answerTasks(undefined, { run });

async function run({ requests, concurrency }) {
  const counted = { left: requests, statuses: { 200: 0 }, latencies: [] };
  const start = performance.now();
  await Promise.all(Array.from({ length: concurrency }, () => callInTurn(counted)));
  const { statuses, latencies } = counted;
  return {
    durationMs: performance.now() - start,
    statuses,
    p50Ms: quantile(latencies, 0.5),
    p99Ms: quantile(latencies, 0.99),
  };
}

async function callInTurn(counted) {
  while (counted.left > 0) {
    counted.left -= 1;
    const since = performance.now();
    const { data } = await getProjects();
    if (data.length !== projects) throw new Error('Not the list of projects');
    counted.latencies.push(performance.now() - since);
    counted.statuses[200] += 1;
  }
}
