/** The argument that this process was started with. */
export const argument = JSON.parse(process.argv[2] ?? '{}');

/**
 * Tells the parent that this process is ready, and does the tasks that it asks for.
 *
 * @param {unknown} ready what the parent is to know
 * @param {Record<string, (argument: any) => unknown>} tasks
 */
export function answerTasks(ready, tasks = {}) {
  const all = { usage, memory, end: () => process.exit(), ...tasks };
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

/** Bytes that this process holds, after collections where `--expose-gc` allows them. What lies in buffers counts too. */
async function memory() {
  for (let times = 0; times < 3; times += 1) {
    globalThis.gc?.();
    await new Promise((resolve) => setImmediate(resolve));
  }
  const { heapUsed, external, rss } = process.memoryUsage();
  return { heapBytes: heapUsed + external, rss };
}
