import type { Controls } from './controls.js';
import { html, page } from './page.js';
import type { Reply } from './reply.js';

/** Returns the status page. */
export function statusPage(_controls: Controls): Reply {
  return page(200, 'Emulator', html`<h1>Emulator</h1>`);
}
