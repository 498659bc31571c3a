import { readFileSync } from 'node:fs';
import { startGc, stopGc } from './gc.mjs';

/** The argument that this process was started with. */
export const argument = JSON.parse(process.argv[2] ?? '{}');

/**
 * Tells the parent that this process is ready, and does the tasks that it asks for.
 *
 * @param {unknown} ready what the parent is to know
 * @param {Record<string, (argument: any) => unknown>} tasks
 */
export function answerTasks(ready, tasks = {}) {
  const all = {
    usage,
    memory,
    startGc,
    stopGc,
    end: () => process.exit(),
    ...tasks,
  };
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

/** CPU time of this process so far, in microseconds: of all threads, and of those that V8 and Node have beside the program's. */
function usage() {
  const { user, system } = process.cpuUsage();
  const cpuUs = user + system;
  return { cpuUs, helpersUs: cpuUs - (mainThreadUs() ?? cpuUs) };
}

/** Linux alone tells it. */
function mainThreadUs() {
  try {
    return Number(readFileSync(`/proc/self/task/${process.pid}/schedstat`, 'utf8').split(' ')[0]) / 1000;
  } catch {
    return undefined;
  }
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
