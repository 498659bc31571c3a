import { optionError } from '../checks.js';
import { ofStrategy } from '../errors.js';
import { type Handler, refuseFramework } from '../middleware/api-client.js';
import { FRAME_GATE, type FrameGateReader } from '../middleware/require-authorization.js';
import { runtimeOf, type Strategy } from '../strategy/strategy.js';
import { loadAhead, succeedOnce } from '../waiting.js';
import type { Frame } from './frame.js';
import { type EmbeddedOptions, misplaced, readFrameOptions } from './frame-options.js';

/**
 * Creates middleware for an application in a frame of the service, whose consent page cannot be framed: the frame has a
 * button that opens the login in a popup. Pass it to `requireAuthorization({ frame })`, too.
 *
 * Mount it after the session, and before `apiClient(strategy)` and the routes.
 *
 * @throws ConfigurationError that names the wrong, unknown or missing option
 * @example
 * ```ts
 * const frame = embedded(strategy, { path: '/login/frame', login: '/login', frameAncestors: ['https://cad.example.com'] });
 * app.use(frame, apiClient(strategy));
 * app.get('/board', requireAuthorization({ login: '/login', frame }), showBoard);
 * ```
 */
export function embedded(strategy: Strategy, options: EmbeddedOptions): Handler {
  const runtime = runtimeOf(strategy);
  const settings = readFrameOptions(options);
  if (settings.identify && runtime.grants.idIsInSession)
    throw optionError(
      'identify',
      "expected a strategy with the option grantId: the frame's grants are found by its user",
    );
  const load = loadAhead(succeedOnce(() => import('./frame.js')));
  let frame: Frame | undefined;
  const handler: Handler = function serveFrame(req, res, next) {
    if (refuseFramework(req, res, next, runtime.settings.name)) return;
    load()
      .then(({ Frame }) => {
        frame ??= new Frame(runtime, settings);
        return frame.serve(req, res, next);
      })
      .catch((error: unknown) => next(ofStrategy(error, runtime.settings.name)));
  };
  const gateOf: FrameGateReader = (req) => {
    if (!frame) throw misplaced('before the routes, by app.use()');
    frame.requireOrder(req);
    return frame;
  };
  return Object.assign(handler, { [FRAME_GATE]: gateOf });
}
