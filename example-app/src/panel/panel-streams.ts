import type { Request, Response } from 'express';
import { NotAuthorizedError, OAuthAppError } from 'passport-oauth-app';
import type { Entry, Journal } from './journal.js';
import { entryView } from './panel-view.js';
import { times } from './token-meter.js';
import { type TokenState, tokenStateOf } from './token-state.js';

/** How often a watched token is looked at. Being asked for, it is refreshed when it is due. */
const beatMs = 2_000;

/** The server-sent events of the panel: one stream for each page that is open. */
export class PanelStreams {
  readonly #journal: Journal;
  readonly #open = new Set<() => void>();

  constructor(journal: Journal) {
    this.#journal = journal;
  }

  /** Streams what happens to the visitor's own grant, until the page goes away or the grant does. */
  open(req: Request, res: Response): void {
    const { grantId } = req.apiClient;
    // 204 tells an EventSource not to come again.
    if (grantId === undefined || !req.apiClient.authorized) return void res.status(204).end();
    res.set({ 'Content-Type': 'text/event-stream', 'X-Accel-Buffering': 'no' });
    const stream = new PanelStream(req, res, this.#journal, grantId);
    const close = () => stream.close();
    this.#open.add(close);
    res.once('close', () => {
      stream.close();
      this.#open.delete(close);
    });
    stream.start(Number(req.get('last-event-id') ?? req.query.after) || 0);
  }

  /** Ends all streams. */
  close(): void {
    for (const close of this.#open) close();
  }
}

class PanelStream {
  readonly #req: Request;
  readonly #res: Response;
  readonly #journal: Journal;
  readonly #grantId: string;
  readonly #stopListening: () => void;
  #beat: NodeJS.Timeout | undefined;
  #told = '';
  #closed = false;

  constructor(req: Request, res: Response, journal: Journal, grantId: string) {
    this.#req = req;
    this.#res = res;
    this.#journal = journal;
    this.#grantId = grantId;
    this.#stopListening = journal.listen(grantId, (entry) => this.#sendEntry(entry));
  }

  start(after: number): void {
    this.#res.flushHeaders();
    for (const entry of this.#journal.of(this.#grantId, after)) this.#sendEntry(entry);
    this.#look();
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    clearTimeout(this.#beat);
    this.#stopListening();
    this.#res.end();
  }

  /** Looks at the token, tells of it if it is another one, and comes back. */
  async #look(): Promise<void> {
    try {
      this.#sendToken(tokenStateOf(await this.#req.apiClient.accessToken()));
    } catch (error) {
      if (error instanceof NotAuthorizedError) {
        this.#send('end', {});
        return this.close();
      }
      // An outage passes, and the next look may find a token again.
      if (!(error instanceof OAuthAppError)) throw error;
    }
    clearTimeout(this.#beat);
    if (!this.#closed) this.#beat = setTimeout(() => void this.#look(), beatMs).unref();
  }

  #sendEntry(entry: Entry): void {
    this.#send('entry', entryView(entry).source, entry.id);
    if (!entry.renewed) return;
    clearTimeout(this.#beat);
    void this.#look();
  }

  #sendToken(state: TokenState | undefined): void {
    const token = { ...state, refreshes: times(this.#journal.refreshes(this.#grantId)) };
    const text = JSON.stringify(token);
    if (text === this.#told) return;
    this.#told = text;
    this.#send('token', token);
  }

  #send(event: string, data: unknown, id?: number): void {
    if (this.#closed) return;
    this.#res.write(`event: ${event}\n${id === undefined ? '' : `id: ${id}\n`}data: ${JSON.stringify(data)}\n\n`);
  }
}
