import { createHmac } from 'node:crypto';
import { record, refuse, text } from './checks.js';
import type { Consents } from './consents.js';
import type { Application, EmulatorUser, Users } from './directory.js';
import type { Reply } from './messages.js';
import { document, html } from './page.js';
import type { Clock, Secrets } from './sources.js';

/** Options of `embed`. */
export interface EmbedOptions {
  /** Id of the user who looks at the page. Default: the first one. */
  readonly userId?: string | undefined;
  /** Name of the query parameter that brings the signed token into the frame. Default `jwtToken`. */
  readonly parameter?: string | undefined;
}

/** Seconds for which a signed token is good. */
const tokenLifetime = 3600;

/** Most pages that are kept; beyond it the oldest is gone. */
const maxPages = 1_000;

/** Dependencies of the pages that show applications. */
export interface EmbeddingSetting {
  readonly users: Users;
  readonly consents: Consents;
  readonly clock: Clock;
  readonly secrets: Secrets;
  /** The application whose secret signs the tokens. */
  readonly application: () => Application | undefined;
}

interface Page {
  readonly url: URL;
  readonly userId: string;
  readonly parameter: string;
}

/** Pages of the service that show an application in a frame. Their addresses cannot be guessed: each page gives a signed token away. */
export class Embedding {
  readonly #setting: EmbeddingSetting;
  readonly #pages = new Map<string, Page>();

  constructor(setting: EmbeddingSetting) {
    this.#setting = setting;
  }

  /**
   * Adds a page and returns its id.
   *
   * @throws {EmulatorError} `ERR_EMULATOR_OPTION` if the URL is not of a page, no user has the id, or an option is malformed.
   */
  add(url: unknown, options: unknown = {}): string {
    const { userId, parameter = 'jwtToken' } = record('embed(): the options', options, ['userId', 'parameter']);
    const { users, secrets } = this.#setting;
    const [first] = users.byId.keys();
    const id = secrets.make();
    this.#pages.set(id, {
      url: pageUrl(url),
      userId: users.require(userId === undefined ? first : text('embed(): userId', userId)).id,
      parameter: text('embed(): parameter', parameter),
    });
    for (const oldest of this.#pages.keys()) {
      if (this.#pages.size <= maxPages) break;
      this.#pages.delete(oldest);
    }
    return id;
  }

  /** Returns the page, with a new token in the address of its frame; `undefined` if there is no such page. */
  page(id: string): Reply | undefined {
    const { users, consents } = this.#setting;
    const known = this.#pages.get(id);
    const user = known && users.byId.get(known.userId);
    if (known === undefined || user === undefined) return undefined;
    consents.userId = user.id;
    const url = new URL(known.url);
    url.searchParams.set(known.parameter, this.#token(user));
    return document(200, {
      title: 'A page of the service',
      css: frameCss,
      hasFrame: true,
      body: html`<header>A page of the service, as ${user.name} sees it</header>
<iframe title="Application" src="${url.href}"></iframe>`,
    });
  }

  #token({ id, domain, claims }: EmulatorUser): string {
    const { clientID = '', clientSecret = '' } = this.#setting.application() ?? {};
    const iat = Math.floor(this.#setting.clock.now() / 1000);
    const context = { user_id: id, ...(domain === undefined ? {} : { organization_domain: domain }) };
    const payload = { aud: clientID, sub: id, domain: domain ?? null, context, iat, exp: iat + tokenLifetime };
    const part = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');
    const signed = `${part({ alg: 'HS256', typ: 'JWT' })}.${part({ ...claims, ...payload })}`;
    return `${signed}.${createHmac('sha256', clientSecret).update(signed).digest('base64url')}`;
  }
}

function pageUrl(url: unknown): URL {
  const href = url instanceof URL ? url.href : url;
  if (typeof href === 'string' && /^https?:/i.test(href) && URL.canParse(href)) return new URL(href);
  return refuse('embed(): the URL', 'an http or https URL of the application', url);
}

const frameCss = `
html, body { height: 100%; margin: 0; }
body { display: flex; flex-direction: column; background: Canvas; color: CanvasText; font: 14px/1.5 system-ui, sans-serif; }
header { padding: 8px 16px; border-bottom: 1px solid GrayText; }
iframe { flex: 1; width: 100%; border: 0; }
`;
