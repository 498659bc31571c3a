import { fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { onCore } from './cores.mjs';

/**
 * @typedef {object} Child
 * @property {any} ready What the child said when it was ready.
 * @property {(name: string, argument?: unknown) => Promise<any>} ask Has one of the child's tasks done.
 * @property {() => Promise<void>} stop
 */

/** Of what a child says on its standard error, for when it ends unexpectedly. */
const CHARS_KEPT = 4_000;

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
  let said = '';
  child.stderr.setEncoding('utf8').on('data', (text) => {
    said = (said + text).slice(-CHARS_KEPT);
  });
  const waiting = new Map();
  child.on('message', ({ id, result, error }) => {
    const { resolve, reject } = waiting.get(id) ?? {};
    waiting.delete(id);
    if (error === undefined) resolve?.(result);
    else reject?.(new Error(`${file}: ${error}`));
  });
  const exited = new Promise((resolve) => child.once('exit', resolve));
  const fail = (code) => {
    for (const { reject } of waiting.values()) reject(new Error(`${file} ended with ${code}\n${said}`));
    waiting.clear();
  };
  void exited.then(fail);
  let last = 0;
  const reply = (id) => new Promise((resolve, reject) => waiting.set(id, { resolve, reject }));
  const ready = await reply(last);
  return {
    ready,
    ask: (name, wanted) => {
      last += 1;
      const answer = reply(last);
      if (child.connected) child.send({ id: last, name, argument: wanted });
      else fail(child.exitCode);
      return answer;
    },
    stop: async () => {
      waiting.clear();
      if (child.exitCode === null) child.kill('SIGKILL');
      await exited;
    },
  };
}
