import { type Request, type Response, Router } from 'express';
import type { Html } from '../pages/html.js';
import { because } from './happening.js';
import type { Journal } from './journal.js';
import { PanelStreams } from './panel-streams.js';
import { idlePanel, panelView } from './panel-view.js';
import { tokenMeter } from './token-meter.js';
import { readTokenState } from './token-state.js';

/** What the panel needs of its surroundings. */
export interface PanelOptions {
  readonly journal: Journal;
  /** Makes the service refuse all access tokens issued so far. A real service lets nobody do that. */
  readonly expireTokens?: (() => void | Promise<void>) | undefined;
}

/** What happens underneath, shown beside each page: a router to be used after `apiClient(strategy)`. */
export class Panel {
  readonly router: Router = Router();
  readonly #journal: Journal;
  readonly #expireTokens: PanelOptions['expireTokens'];
  readonly #streams: PanelStreams;

  constructor({ journal, expireTokens }: PanelOptions) {
    this.#journal = journal;
    this.#expireTokens = expireTokens;
    this.#streams = new PanelStreams(journal);
    this.router.get('/panel/events', (req, res) => this.#streams.open(req, res));
    this.router.use((req, _res, next) => because(req, next));
    this.router.get('/panel/call', callApi);
    if (expireTokens) this.router.post('/panel/expire', (_req, res) => this.#expire(res));
    this.router.use((req, res, next) => {
      // Made when the page is, so that it tells of what the page itself has brought about.
      res.locals.panel = () => this.#beside(req);
      next();
    });
  }

  /** Ends all streams, which would keep the server from closing. */
  close(): void {
    this.#streams.close();
  }

  async #expire(res: Response): Promise<void> {
    await this.#expireTokens?.();
    res.redirect(303, '/projects?expired');
  }

  async #beside(req: Request): Promise<PanelParts> {
    const { grantId, authorized } = req.apiClient;
    const canExpire = this.#expireTokens !== undefined;
    if (grantId === undefined || !authorized) return { aside: idlePanel, meter: undefined, canExpire };
    const meter = tokenMeter(await readTokenState(req.apiClient), this.#journal.refreshes(grantId));
    const entries = this.#journal.of(grantId);
    const isHome = req.path === '/';
    return { aside: panelView({ entries, meter: isHome ? undefined : meter, canExpire }), meter, canExpire };
  }
}

/** What a page shows of the panel: `res.locals.panel()` makes it. */
export interface PanelParts {
  /** Stands beside the page. */
  readonly aside: Html;
  /** The bar of the token, for the page that shows it itself. */
  readonly meter: Html | undefined;
  readonly canExpire: boolean;
}

/** One API call, for the button that makes many at once. */
async function callApi(req: Request, res: Response): Promise<void> {
  await req.apiClient.projects();
  res.json({ pid: process.pid });
}
