import { startChild } from './child.mjs';

/** Express caches views and says less under it; the emulator refuses it. */
const PRODUCTION = { NODE_ENV: 'production' };

/**
 * The processes of one scenario, all of which end with it.
 *
 * @template T
 * @param {(stage: ReturnType<typeof newStage>) => Promise<T>} play
 * @returns {Promise<T>}
 */
export async function onStage(play) {
  const ending = [];
  try {
    return await play(newStage(ending));
  } finally {
    await Promise.all(ending.map((one) => one.stop()));
  }
}

function newStage(ending) {
  const kept = async (starting) => {
    const one = await starting;
    ending.push(one);
    return one;
  };
  return {
    keep: kept,
    /** @param {object} [options] of the service */
    service: (options) => kept(startChild('service/service.mjs', options)),
    load: () => kept(startChild('lib/load.mjs')),
    /** @param {object} options which application, in front of which service: see apps/server.mjs */
    app: (options) =>
      kept(startChild('apps/server.mjs', options, { env: PRODUCTION, execArgv: ['--max-old-space-size=8192'] })),
    /** The same, for memory to be measured: each question after its use collects garbage first. */
    appWithGc: (options) =>
      kept(
        startChild('apps/server.mjs', options, {
          env: PRODUCTION,
          execArgv: ['--max-old-space-size=8192', '--expose-gc'],
        }),
      ),
  };
}
