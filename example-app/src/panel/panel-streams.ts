import type { Request, Response } from 'express';
import { OAuthAppError } from 'passport-oauth-app';
import type { Incidents } from '../incidents/incidents.js';
import type { Html } from '../pages/html.js';
import { bringsToken, type Entry, type Journal } from './journal.js';
import { endedPanel, panelParts } from './panel-view.js';
import { readTokenState, type TokenState } from './token-state.js';

/** The surroundings of the panel. */
export interface PanelOptions {
  readonly journal: Journal;
  /** The buttons; a real service cannot be broken. */
  readonly incidents?: Incidents | undefined;
  /** Epoch milliseconds. */
  readonly clock: () => number;
}

/** How often the parts are drawn anew, so that time passes on them. */
const drawingMs = 1_000;
/** How long entries that come one after the other are collected. */
const soonMs = 50;
/** How often an open page makes an API call. The token is refreshed by this when it is due. */
const callingMs = 3_000;

/** Returns the id of the grant that this visitor may see: their own, or the one that they have just ended by an incident. */
export function shownGrant(req: Request): string | undefined {
  return req.apiClient.authorized ? req.apiClient.grantId : req.session.endedGrant;
}

/** The server-sent events of the panel: one stream for each open page. */
export class PanelStreams {
  readonly #options: PanelOptions;
  readonly #open = new Set<PanelStream>();

  constructor(options: PanelOptions) {
    this.#options = options;
  }

  /** Streams the parts of the panel, until the page is closed or the login has ended. */
  open(req: Request, res: Response): void {
    const grantId = shownGrant(req);
    // 204 tells an EventSource not to come again.
    if (grantId === undefined) return void res.status(204).end();
    res.set({ 'Content-Type': 'text/event-stream', 'X-Accel-Buffering': 'no' }).flushHeaders();
    const stream = new PanelStream(req, res, grantId, this.#options);
    this.#open.add(stream);
    res.once('close', () => {
      stream.close();
      this.#open.delete(stream);
    });
    stream.start();
  }

  /** Ends all streams. */
  close(): void {
    for (const stream of this.#open) stream.close();
  }
}

class PanelStream {
  readonly #req: Request;
  readonly #res: Response;
  readonly #grantId: string;
  readonly #options: PanelOptions;
  readonly #wasAuthorized: boolean;
  readonly #sent = new Map<string, string>();
  #stopListening = () => {};
  #timers: readonly NodeJS.Timeout[] = [];
  #soon: NodeJS.Timeout | undefined;
  #token: TokenState | undefined;
  #closed = false;

  constructor(req: Request, res: Response, grantId: string, options: PanelOptions) {
    this.#req = req;
    this.#res = res;
    this.#grantId = grantId;
    this.#options = options;
    this.#wasAuthorized = req.apiClient.authorized;
  }

  start(): void {
    this.#stopListening = this.#options.journal.listen(this.#grantId, (entry) => this.#hear(entry));
    this.#timers = [setInterval(() => void this.#look(), drawingMs), setInterval(() => void this.#call(), callingMs)];
    for (const timer of this.#timers) timer.unref();
    void this.#look();
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    for (const timer of this.#timers) clearInterval(timer);
    clearTimeout(this.#soon);
    this.#stopListening();
    this.#res.end();
  }

  /** Draws an entry soon, together with those that follow at once. */
  #hear(entry: Entry): void {
    // Reading the token after a failure could fail again, and so go round in circles.
    if (bringsToken(entry)) void this.#look();
    else this.#soon ??= setTimeout(() => this.#draw(), soonMs).unref();
  }

  async #look(): Promise<void> {
    const { apiClient } = this.#req;
    this.#token = apiClient.authorized ? await readTokenState(apiClient) : undefined;
    this.#draw();
  }

  #draw(): void {
    clearTimeout(this.#soon);
    this.#soon = undefined;
    const { journal, clock } = this.#options;
    const { authorized } = this.#req.apiClient;
    if (this.#wasAuthorized && !authorized) {
      this.#send('end', endedPanel.source);
      this.close();
    } else {
      const { incidentAt } = this.#req.session;
      const story = journal.of(this.#grantId);
      const parts = panelParts({ story, token: this.#token, authorized, incidentAt, now: clock() });
      this.#send('parts', this.#changed(parts));
    }
  }

  #changed(parts: Readonly<Record<string, Html>>): Readonly<Record<string, string>> {
    const changed = Object.entries(parts).filter(([name, { source }]) => this.#sent.get(name) !== source);
    for (const [name, { source }] of changed) this.#sent.set(name, source);
    return Object.fromEntries(changed.map(([name, { source }]) => [name, source]));
  }

  /** Makes an API call as a page would, so that the lane of API calls shows what users notice. A real service is spared. */
  async #call(): Promise<void> {
    const { apiClient } = this.#req;
    if (!this.#options.incidents || !apiClient.authorized) return;
    try {
      await apiClient.projects();
    } catch (error) {
      // The panel draws it from the events.
      if (!(error instanceof OAuthAppError)) throw error;
    }
  }

  #send(event: string, data: unknown): void {
    if (!this.#closed) this.#res.write(`event: ${event}\ndata: ${JSON.stringify(data)}\n\n`);
  }
}
