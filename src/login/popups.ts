import type { IncomingMessage } from 'node:http';
import type { FrameTarget } from './pending-logins.js';

/** A login in a popup. Its session is for the frame that opened it, and the user's tabs stay as they are. */
export interface Popup {
  readonly target: FrameTarget;
  /** Called before the grant is stored. @throws AuthorizationError if the frame has another user */
  admit(grantId: string): void;
  /** Called with the scopes that were not granted. @param isDeclined True if the login failed by that. */
  noteRefused(scope: readonly string[], isDeclined: boolean): void;
}

/** Finds the popups of a strategy. `embedded()` installs it. */
export interface Popups {
  /** Returns the popup that sent the request; `undefined` for any other request. */
  popupOf(req: IncomingMessage): Popup | undefined;
}
