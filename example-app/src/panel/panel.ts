import { type Request, type Response, Router } from 'express';
import { because } from './happening.js';
import type { Journal } from './journal.js';
import { PanelStreams } from './panel-streams.js';
import { panelView } from './panel-view.js';

/** What the panel needs of its surroundings. */
export interface PanelOptions {
  readonly journal: Journal;
  /** Makes the service refuse all access tokens issued so far. A real service lets nobody do that. */
  readonly expireTokens?: (() => void | Promise<void>) | undefined;
}

/** What happens underneath, shown beside each page: a router to be used after `apiClient(strategy)`. */
export class Panel {
  readonly router: Router = Router();
  readonly #streams: PanelStreams;

  constructor({ journal, expireTokens }: PanelOptions) {
    this.#streams = new PanelStreams(journal);
    this.router.use((req, res, next) => {
      const { grantId } = req.apiClient;
      res.locals.refreshes = grantId === undefined ? 0 : journal.refreshes(grantId);
      res.locals.canExpire = expireTokens !== undefined;
      res.locals.aside = panelView(req, journal, Boolean(expireTokens));
      because(req, next);
    });
    this.router.get('/panel/events', (req, res) => this.#streams.open(req, res));
    this.router.get('/panel/call', callApi);
    if (expireTokens) {
      this.router.post('/panel/expire', async (_req, res) => {
        await expireTokens();
        res.redirect(303, '/projects?expired');
      });
    }
  }

  /** Ends all streams, which would keep the server from closing. */
  close(): void {
    this.#streams.close();
  }
}

/** One API call, for the button that makes many at once. */
async function callApi(req: Request, res: Response): Promise<void> {
  await req.apiClient.projects();
  res.json({ pid: process.pid });
}
