import { startChild } from './child.mjs';
import { measuredCore, otherCore } from './cores.mjs';

/** Express caches views and says less under it; the emulator refuses it. */
const PRODUCTION = { NODE_ENV: 'production' };
/** The task `memory` collects garbage first. */
const EXEC_ARGV = ['--max-old-space-size=8192', '--expose-gc'];

/**
 * Plays a scenario with a service and a load generator. All processes end with it.
 *
 * @template T
 * @param {(stage: { service: any, load: any, startLoad: Function, startService: Function, measured: Function, app: Function }) => Promise<T>} play
 *   `measured`: a module of bench/ that is measured; `app`: an application in front of the service, see apps/server.mjs
 * @param {{ pinned?: boolean }} [options] `pinned`: what is measured has a core of its own, see cores.mjs; the others are the service's
 * @returns {Promise<T>}
 */
export async function onStage(play, { pinned = false, ...serviceOptions } = {}) {
  const children = [];
  const start = async (file, argument, core, options) => {
    const child = await startChild(file, argument, { ...options, core: pinned ? core : undefined });
    children.push(child);
    return child;
  };
  const startService = (options) => start('service/service.mjs', options, otherCore);
  const startLoad = () => start('lib/load.mjs', {}, otherCore);
  const measured = (file, options, execArgv = []) => start(file, options, measuredCore, { env: PRODUCTION, execArgv });
  try {
    const [service, load] = await Promise.all([startService(serviceOptions), startLoad()]);
    const app = (options, execArgv = EXEC_ARGV) =>
      measured('apps/server.mjs', { service: service.ready, ...options }, execArgv);
    return await play({ service, load, startLoad, startService, measured, app });
  } finally {
    await Promise.all(children.map((child) => child.stop()));
  }
}
