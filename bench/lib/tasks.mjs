/** The argument that this process was started with. */
export const argument = JSON.parse(process.argv[2] ?? '{}');

/**
 * Tells the parent that this process is ready, and does the tasks that it asks for.
 *
 * @param {unknown} ready what the parent is to know
 * @param {Record<string, (argument: any) => unknown>} tasks
 */
export function answerTasks(ready, tasks = {}) {
  const all = { usage, end: () => process.exit(), ...tasks };
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

/** CPU time of this process so far in microseconds, and its memory in bytes (after a collection where `--expose-gc` allows one). */
function usage() {
  globalThis.gc?.();
  const { user, system } = process.cpuUsage();
  const { heapUsed, rss } = process.memoryUsage();
  return { cpuUs: user + system, heapUsed, rss };
}
