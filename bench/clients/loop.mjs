import { quantile } from '../lib/statistics.mjs';
import { answerTasks, argument } from '../lib/tasks.mjs';

/** The process of one API client: `GET /api/v2/projects`, so many at once. Its argument says which client. */
const { client, service, projects } = argument;
const clients = await import('./clients.mjs');
const getProjects = await clients[client](service);

answerTasks(undefined, { run });

async function run({ requests, concurrency }) {
  const latencies = [];
  let left = requests;
  const work = async () => {
    while (left > 0) {
      left -= 1;
      const since = performance.now();
      const { data } = await getProjects();
      if (data.length !== projects) throw new Error('Not the list of projects');
      latencies.push(performance.now() - since);
    }
  };
  const start = performance.now();
  await Promise.all(Array.from({ length: concurrency }, work));
  const durationMs = performance.now() - start;
  const statuses = { 200: latencies.length };
  return { durationMs, statuses, p50Ms: quantile(latencies, 0.5), p99Ms: quantile(latencies, 0.99) };
}
