import type { IncomingMessage, ServerResponse } from 'node:http';
import { type Optional, optionError, withDefault } from '../checks.js';

/** What `requireAuthorization` asks of the middleware of a frame. */
export interface FrameGate {
  /** Throws if the middleware does not stand where it has to. @throws ConfigurationError */
  requireOrder(req: IncomingMessage): void;
  /** Returns true if the button answers a page request without a grant. */
  isFor(req: IncomingMessage): boolean;
  /** Returns true if the user refused one of the scopes a moment ago, in the popup that this frame opened. */
  isRefused(req: IncomingMessage, scope: readonly string[]): boolean;
  /**
   * Answers a page request of the frame with the button.
   *
   * @param scope Scopes that the popup asks for. Default: those of every login.
   * @param isStepUp True if the frame is logged in, and lacks scopes.
   * @throws NotAuthorizedError if the request names no user, where it should; ConfigurationError if the frame would lose its session
   */
  answer(req: IncomingMessage, res: ServerResponse, scope: string | undefined, isStepUp: boolean): void;
}

/** Key of the {@link FrameGate} of the middleware that `embedded` returns. */
export const FRAME_GATE: unique symbol = Symbol('passport-oauth-app.frame');

/** Reads the option `frame` of `requireAuthorization`. */
export const frameOption: Optional<FrameGate | undefined> = withDefault(undefined, (option, value) => {
  if (hasGate(value)) return value[FRAME_GATE];
  throw optionError(option, 'expected what embedded(strategy, …) returned');
});

function hasGate(value: unknown): value is { readonly [FRAME_GATE]: FrameGate } {
  return typeof value === 'function' && FRAME_GATE in value;
}
