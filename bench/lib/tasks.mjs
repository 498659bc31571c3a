import { Session } from 'node:inspector/promises';

/** The argument that this process was started with. */
export const argument = JSON.parse(process.argv[2] ?? '{}');

/**
 * Tells the parent that this process is ready, and does the tasks that it asks for.
 *
 * @param {unknown} ready what the parent is to know
 * @param {Record<string, (argument: any) => unknown>} tasks
 */
export function answerTasks(ready, tasks = {}) {
  const all = { usage, memory, startCoverage, stopCoverage, end: () => process.exit(), ...tasks };
  process.on('message', async ({ id, name, argument: wanted }) => {
    try {
      process.send?.({ id, result: await all[name](wanted) });
    } catch (error) {
      process.send?.({ id, error: String(error?.stack ?? error) });
    }
  });
  // Nothing is to go on when the parent has ended.
  process.on('disconnect', () => process.exit());
  process.send?.({ id: 0, result: ready });
}

/** CPU time of all threads of this process so far, in microseconds. */
function usage() {
  const { user, system } = process.cpuUsage();
  return { cpuUs: user + system };
}

/**
 * Bytes that this process holds, after a collection where `--expose-gc` allows one. What lies in buffers counts too.
 *
 * @param {{ collections?: number }} [options] fewer take less time, and leave what the first one only makes ready to be freed
 */
async function memory({ collections = 3 } = {}) {
  for (let times = 0; times < collections; times += 1) {
    globalThis.gc?.();
    await new Promise((resolve) => setImmediate(resolve));
  }
  const { heapUsed, external, rss } = process.memoryUsage();
  return { heapBytes: heapUsed + external, rss };
}

let inspector;

/** Begins to count the functions that are entered. */
async function startCoverage() {
  inspector = new Session();
  inspector.connect();
  await inspector.post('Profiler.enable');
  await inspector.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false });
}

/** The names of the package's functions that were entered meanwhile, and how often. @returns {Promise<[string, number][]>} */
async function stopCoverage() {
  const { result } = await inspector.post('Profiler.takePreciseCoverage');
  inspector.disconnect();
  const counts = new Map();
  for (const { functionName, ranges } of result
    .filter(({ url }) => url.includes('/dist/') && !url.includes('node_modules'))
    .flatMap(({ functions }) => functions)
    .filter(({ ranges: [{ count }] }) => count > 0))
    counts.set(functionName, (counts.get(functionName) ?? 0) + ranges[0].count);
  return [...counts];
}
