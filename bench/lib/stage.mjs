import { startChild } from './child.mjs';
import { measuredCore, otherCore } from './cores.mjs';

/** Express caches views and says less under it; the emulator refuses it. */
const PRODUCTION = { NODE_ENV: 'production' };
const LARGE_HEAP = '--max-old-space-size=8192';

/**
 * The processes of one scenario, all of which end with it.
 *
 * @template T
 * @param {(stage: ReturnType<typeof newStage>) => Promise<T>} play
 * @param {{ pinned?: boolean }} [options] `pinned`: what is measured has a core of its own, see cores.mjs
 * @returns {Promise<T>}
 */
export async function onStage(play, { pinned = false } = {}) {
  const ending = [];
  try {
    return await play(newStage(ending, pinned ? { measuredCore, otherCore } : {}));
  } finally {
    await Promise.all(ending.map((one) => one.stop()));
  }
}

function newStage(ending, { measuredCore: measured, otherCore: other }) {
  const kept = async (starting) => {
    const one = await starting;
    ending.push(one);
    return one;
  };
  const app = (options, execArgv) =>
    kept(startChild('apps/server.mjs', options, { env: PRODUCTION, execArgv, core: measured }));
  return {
    /** @param {object} [options] of the service */
    service: (options) => kept(startChild('service/service.mjs', options, { core: other })),
    load: () => kept(startChild('lib/load.mjs', undefined, { core: other })),
    /** A module of bench/ that is measured. */
    measured: (file, options, execArgv = []) =>
      kept(startChild(file, options, { env: PRODUCTION, execArgv, core: measured })),
    /** @param {object} options which application, in front of which service: see apps/server.mjs */
    app: (options) => app(options, [LARGE_HEAP]),
    /** The same, for memory to be measured: its task `memory` collects garbage first. */
    appWithGc: (options) => app(options, [LARGE_HEAP, '--expose-gc']),
    keep: kept,
  };
}
