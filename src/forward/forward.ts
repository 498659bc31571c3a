import { readOptions } from '../checks.js';
import { ofStrategy } from '../errors.js';
import {
  clientProperty,
  type Handler,
  type ManyStrategies,
  manyHandlers,
  refuseFramework,
} from '../middleware/api-client.js';
import { runtimeOf, type Strategy } from '../strategy/strategy.js';
import { loadAhead, succeedOnce } from '../waiting.js';
import { AllowList } from './allow-list.js';

/** Options of {@link forward}. */
export interface ForwardOptions {
  /**
   * The requests that are forwarded: a method or `*`, a space, and a path below the API path, as `GET /projects`. In the path,
   * `*` matches one segment, and `/**` at its end the path before it and everything below.
   */
  readonly allow: readonly string[];
  /** The request property that holds the client, as set for `apiClient`. Default: `'apiClient'`. */
  readonly property?: string | undefined;
}

/**
 * Creates middleware that forwards requests of a page to the API with the user's access token, and streams both bodies. Mount it
 * below a path, after `requireAuthorization()` and before any body parser: a request goes to the same path below `apiPath`.
 *
 * It forwards what `allow` names, and unsafe methods only from pages of this origin. Anything else is a `ForwardError` (404 or
 * 403), and nothing is sent. Cookies and connection headers pass in neither direction. The call ends when the browser
 * disconnects. Errors go to `next`.
 *
 * @throws ConfigurationError that names the wrong or unknown option
 * @example
 * ```ts
 * app.use('/api', requireAuthorization(), forward(strategy, { allow: ['GET /projects', '* /projects/*\/files/**'] }));
 * ```
 */
export function forward(strategy: Strategy | ManyStrategies, options: ForwardOptions): Handler {
  const { allow, property } = readOptions('forward(strategy, options)', options, {
    allow: AllowList.read,
    property: clientProperty,
  });
  const many = manyHandlers.get(strategy);
  if (many) return many.each((one) => forward(one, options));
  const { api, settings } = runtimeOf(strategy);
  const load = loadAhead(succeedOnce(() => import('./forward-call.js')));
  const forwarding = { api, strategyName: settings.name, allow, property };
  return function forwardRequest(req, res, next) {
    if (refuseFramework(req, res, next, settings.name)) return;
    const gone = new AbortController();
    const abort = () => gone.abort();
    res.once('close', abort);
    load()
      .then(({ forwardCall }) => forwardCall(forwarding, req, res, gone.signal))
      .catch((error: unknown) => {
        // The browser has disconnected otherwise.
        if (!gone.signal.aborted) next(ofStrategy(error, settings.name));
      })
      // Each response closes eventually, and building the error of an abort is slow.
      .finally(() => res.off('close', abort));
  };
}
