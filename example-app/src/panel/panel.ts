import { setTimeout as pause } from 'node:timers/promises';
import { type Request, type Response, Router } from 'express';
import type { ApiClient } from 'passport-oauth-app';
import { type Html, html } from '../html.js';
import { incidentsView } from '../incidents/catalogue.js';
import { causes, type Journal } from './journal.js';
import { claimsOf } from './recorder.js';
import { endedPanel, guide, idlePanel, type PanelContent, panelParts, panelView } from './view.js';

/** The panel's pieces for a page, made by `res.locals.panel()`. There are no incidents with a real service. */
export interface PanelViews {
  readonly panel: Html;
  readonly firstMinute: Html | undefined;
  readonly incidents: Html | undefined;
  readonly verdict: Html | undefined;
  /** For the title of the page, which screen readers announce first. */
  readonly verdictText: string | undefined;
}

/** How often the parts are drawn anew, so that time passes on them. */
const drawingMs = 1_000;
/** How long entries that come one after the other are collected. */
const soonMs = 50;
/** How often an open page makes an API call. The token is refreshed by this when it is due. */
const callingMs = 3_000;

/**
 * Shows what happens to the tokens beside each page: a router to be used after `apiClient(strategy)`. `close` ends all streams,
 * which would keep the server from closing.
 *
 * @param incidents Causes them; a real service cannot be broken.
 * @param clock In epoch milliseconds.
 */
export function createPanel(journal: Journal, incidents: Router | undefined, clock: () => number) {
  const streams = new Set<Response>();
  const router = Router();
  router.use((req, res, next) => {
    // Made when the page is, so that it shows what the page itself has led to.
    res.locals.panel = () => views(req);
    const { state } = req.query;
    causes.run({ userId: req.user?.id, state: typeof state === 'string' ? state : undefined }, next);
  });
  router.get('/panel/events', stream);
  if (incidents) router.use('/incidents', incidents);
  const close = () => {
    for (const res of streams) res.end();
  };
  return { router, close };

  async function views(req: Request): Promise<PanelViews> {
    const token = await tokenOf(req.apiClient);
    const grantId = shownGrant(req);
    // Reading the token may have ended the grant.
    const { authorized } = req.apiClient;
    const { verdict } = req.session;
    if (verdict !== undefined) delete req.session.verdict;
    const firstMinute = html`<section class="card" aria-labelledby="minute-title">
<h2 id="minute-title">The first minute</h2>
<ol class="steps" data-part="guide">${guide(authorized && grantId !== undefined ? journal.of(grantId) : undefined)}</ol>
</section>`;
    return {
      panel: grantId === undefined ? idlePanel() : panelView(contentOf(req, grantId, token)),
      firstMinute: incidents && firstMinute,
      incidents: incidents && authorized ? incidentsView : undefined,
      verdict: verdict && html`<p class="notice" role="status" data-tone="${verdict.tone}">${verdict.text}</p>`,
      verdictText: verdict?.text,
    };
  }

  function contentOf(req: Request, grantId: string, token: PanelContent['token']): PanelContent {
    const { incidentAt } = req.session;
    return { story: journal.of(grantId), token, authorized: req.apiClient.authorized, incidentAt, now: clock() };
  }

  /** Streams the parts of the panel as server-sent events, until the page is closed or the login has ended. */
  async function stream(req: Request, res: Response): Promise<void> {
    const { apiClient } = req;
    const grantId = shownGrant(req);
    // 204 tells an EventSource not to come again.
    if (grantId === undefined) return void res.status(204).end();
    res.set({ 'Content-Type': 'text/event-stream', 'X-Accel-Buffering': 'no' }).flushHeaders();
    streams.add(res);
    res.once('close', () => streams.delete(res));
    const send = (event: string, data: unknown) => res.write(`event: ${event}\ndata: ${JSON.stringify(data)}\n\n`);
    const wasAuthorized = apiClient.authorized;
    let sent: ReturnType<typeof panelParts> = {};
    let token: PanelContent['token'];
    let readAt = Number.NEGATIVE_INFINITY;
    let refreshesRead = 0;
    let calledAt = performance.now();
    while (!res.writableEnded && !res.destroyed) {
      const { refreshes } = journal.of(grantId);
      // Not after each entry: a read that fails is an entry itself, which wakes the other pages.
      if (refreshes !== refreshesRead || performance.now() - readAt >= drawingMs) {
        readAt = performance.now();
        refreshesRead = refreshes;
        token = await tokenOf(apiClient);
      }
      if (res.writableEnded || res.destroyed) return;
      if (wasAuthorized && !apiClient.authorized) {
        send('end', endedPanel().source);
        return void res.end();
      }
      const parts = panelParts(contentOf(req, grantId, token));
      const changed = Object.entries(parts).filter(([name, { source }]) => source !== sent[name]?.source);
      send('parts', Object.fromEntries(changed.map(([name, { source }]) => [name, source])));
      sent = parts;
      // As a page would, so that the lane of API calls shows what users notice. A real service is spared.
      if (incidents && apiClient.authorized && performance.now() - calledAt >= callingMs) {
        calledAt = performance.now();
        // What comes of it is in the log.
        apiClient.projects().catch(() => {});
      }
      if (await journal.changes(grantId, drawingMs)) await pause(soonMs);
    }
  }
}

/** Returns the id of the grant that this visitor may see: their own, or the one that they have just ended by an incident. */
function shownGrant(req: Request): string | undefined {
  return req.apiClient.authorized ? req.apiClient.grantId : req.session.endedGrant;
}

/** Returns the lifetime of the access token, refreshing it first if it is due; `undefined` if there is no valid token. */
async function tokenOf(client: ApiClient): Promise<PanelContent['token']> {
  // Why there is none is in the log.
  const jwt = client.authorized ? await client.accessToken().catch(() => '') : '';
  const { iat, exp } = claimsOf(jwt);
  if (typeof exp !== 'number') return undefined;
  return { expiresAt: exp * 1000, issuedAt: (typeof iat === 'number' ? iat : exp) * 1000 };
}
