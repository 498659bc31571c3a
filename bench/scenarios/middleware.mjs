import { onStage } from '../lib/stage.mjs';
import { interval } from '../lib/statistics.mjs';

/** Young objects have room for all that is allocated between two looks at the heap. */
const EXEC_ARGV = ['--expose-gc', '--max-semi-space-size=128', '--min-semi-space-size=128'];

/** The finest measure: one pass of the middleware with the grant in the cache, without HTTP. */
export async function middleware({ starts }) {
  const passes = [];
  const play = async ({ service, measured }) => {
    const alone = await measured('alone/middleware.mjs', { service: service.ready }, EXEC_ARGV);
    return await alone.ask('measure');
  };
  for (let start = 0; start < starts; start += 1) passes.push(await onStage(play, { pinned: true }));
  return {
    title: 'The middleware alone, grant in the cache',
    ns: interval(passes.map(({ ns }) => ns)),
    bytes: interval(passes.map(({ bytes }) => bytes)),
  };
}
