import { type Html, html } from '../pages/html.js';
import type { TokenState } from './token-state.js';

/** A bar that runs down with the token's lifetime. The script moves it; without a script it shows the moment of the page. */
export function tokenMeter(state: TokenState | undefined, refreshes: number, now: number = Date.now()): Html {
  const { issuedAt, expiresAt } = state ?? { issuedAt: now, expiresAt: now };
  const seconds = Math.max(0, Math.round((expiresAt - now) / 1000));
  const lifetime = Math.max(1, Math.round((expiresAt - issuedAt) / 1000));
  return html`<section class="meter" data-meter data-issued-at="${issuedAt}" data-expires-at="${expiresAt}" aria-label="Access token">
<p class="left"><span>Access token</span><b><span data-left>${state ? `${seconds} s` : 'not known'}</span> <small>left of ${lifetime} s</small></b></p>
<progress data-bar max="${lifetime}" value="${seconds}" aria-label="Lifetime left of the access token"></progress>
<p class="soft">Expires at <time data-expiry datetime="${new Date(expiresAt).toISOString()}">${clockTime(expiresAt)}</time>.
Refreshed <b data-refreshes>${times(refreshes)}</b> since you logged in.</p>
</section>`;
}

/** `never`, `once`, `5 times`. */
export function times(count: number): string {
  if (count === 0) return 'never';
  return count === 1 ? 'once' : `${count} times`;
}

/** The time of day of the server, to the second. */
export function clockTime(at: number): string {
  return new Date(at).toTimeString().slice(0, 8);
}
