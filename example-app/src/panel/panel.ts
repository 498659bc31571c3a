import { type Request, type Response, Router } from 'express';
import { incidentsView } from '../incidents/incident-view.js';
import { type Html, html } from '../pages/html.js';
import { because } from './happening.js';
import { type PanelOptions, PanelStreams, shownGrant } from './panel-streams.js';
import { guide, idlePanel, panelView } from './panel-view.js';
import { readTokenState } from './token-state.js';

/** The panel's pieces for a page, made by `res.locals.panel()`. */
export interface PanelViews {
  readonly panel: Html;
  /** The first minute; `undefined` with a real service, as are the buttons. */
  readonly guide: Html | undefined;
  readonly incidents: Html | undefined;
  readonly verdict: Html | undefined;
}

/** Shows what happens to the tokens beside each page: a router to be used after `apiClient(strategy)`. */
export class Panel {
  readonly router: Router = Router();
  readonly #options: PanelOptions;
  readonly #streams: PanelStreams;

  constructor(options: PanelOptions) {
    this.#options = options;
    this.#streams = new PanelStreams(options);
    this.router.use((req, _res, next) => {
      const { state } = req.query;
      because({ userId: req.user?.id, state: typeof state === 'string' ? state : undefined }, next);
    });
    this.router.get('/panel/events', (req, res) => this.#streams.open(req, res));
    if (options.incidents) this.router.use('/incidents', options.incidents.router);
    this.router.use((req, res, next) => {
      // Made when the page is, so that it shows what the page itself has led to; and once, as a verdict is shown once.
      let views: Promise<PanelViews> | undefined;
      res.locals.panel = () => {
        views ??= this.#views(req);
        return views;
      };
      next();
    });
  }

  /** Ends all streams, which would keep the server from closing. */
  close(): void {
    this.#streams.close();
  }

  async #views(req: Request): Promise<PanelViews> {
    const { journal, incidents, clock } = this.#options;
    const token = req.apiClient.authorized ? await readTokenState(req.apiClient) : undefined;
    // Reading the token may have ended the grant.
    const { authorized } = req.apiClient;
    const grantId = shownGrant(req);
    const story = grantId === undefined ? undefined : journal.of(grantId);
    const { verdict, incidentAt } = req.session;
    if (verdict !== undefined) delete req.session.verdict;
    return {
      panel: story ? panelView({ story, token, authorized, incidentAt, now: clock() }) : idlePanel,
      guide: incidents && html`<ol class="steps" data-part="guide">${guide(authorized ? story : undefined)}</ol>`,
      incidents: incidents && authorized ? incidentsView : undefined,
      verdict: verdict && html`<p class="notice" role="status" data-tone="${verdict.tone}">${verdict.text}</p>`,
    };
  }
}

/** Returns the panel's pieces for a page; `undefined` if the request has failed before the panel's router. */
export async function panelViews(res: Response): Promise<PanelViews | undefined> {
  return res.locals.panel?.();
}
