import { fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { onCore } from './cores.mjs';

/**
 * @typedef {object} Child
 * @property {any} ready What the child said when it was ready.
 * @property {(name: string, argument?: unknown) => Promise<any>} ask Has one of the child's tasks done.
 * @property {() => Promise<void>} stop
 */

const LINES_KEPT = 20;

/**
 * Starts a module of bench/ in a process of its own, and waits until it is ready.
 *
 * @param {string} file relative to bench/
 * @param {unknown} argument handed to the module as JSON
 * @param {{ env?: Record<string, string>, execArgv?: string[], core?: string }} [options] `core`: the only one that it runs on
 * @returns {Promise<Child>}
 */
export async function startChild(file, argument, { env = {}, execArgv = [], core } = {}) {
  const path = fileURLToPath(new URL(`../${file}`, import.meta.url));
  const [execPath, ...before] = [...onCore(core), process.execPath];
  const child = fork(path, [JSON.stringify(argument ?? {})], {
    env: { ...process.env, ...env },
    execPath,
    execArgv: [...before, ...execArgv],
    stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
  });
  const lines = collectLines(child.stderr);
  const waiting = new Map();
  const exited = new Promise((resolve) => child.once('exit', resolve));
  child.on('message', ({ id, result, error }) => {
    const { resolve, reject } = waiting.get(id) ?? {};
    waiting.delete(id);
    if (error === undefined) resolve?.(result);
    else reject?.(new Error(`${file}: ${error}`));
  });
  void exited.then((code) => {
    const error = new Error(`${file} ended with ${code}\n${lines.join('\n')}`);
    for (const { reject } of waiting.values()) reject(error);
    waiting.clear();
  });
  let last = 0;
  const reply = (id) => new Promise((resolve, reject) => waiting.set(id, { resolve, reject }));
  const ready = await reply(last);
  return {
    ready,
    ask: (name, wanted) => {
      last += 1;
      const answer = reply(last);
      if (!child.connected) waiting.get(last).reject(new Error(`${file} has ended\n${lines.join('\n')}`));
      else child.send({ id: last, name, argument: wanted });
      return answer;
    },
    stop: async () => {
      waiting.clear();
      if (child.exitCode === null) child.kill('SIGKILL');
      await exited;
    },
  };
}

/** The last lines of what a child says on its standard error, for when it ends unexpectedly. */
function collectLines(stream) {
  const lines = [];
  stream.setEncoding('utf8');
  stream.on('data', (text) => {
    lines.push(...text.split('\n').filter((line) => line !== ''));
    lines.splice(0, Math.max(0, lines.length - LINES_KEPT));
  });
  return lines;
}
