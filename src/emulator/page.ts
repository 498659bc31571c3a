import { createHash } from 'node:crypto';
import { css } from './page-style.js';
import type { Reply } from './reply.js';

/** A piece of HTML in which all outside text is escaped. */
export class Html {
  readonly source: string;

  constructor(source: string) {
    this.source = source;
  }
}

/** Template tag that escapes its values unless they are `Html`. A list is joined. */
export function html(strings: TemplateStringsArray, ...values: readonly (string | Html | readonly Html[])[]): Html {
  let source = strings[0] ?? '';
  for (const [index, value] of values.entries()) {
    if (typeof value === 'string') source += value.replace(/[&<>"']/g, (character) => entities[character] ?? '');
    else source += value instanceof Html ? value.source : value.map((part) => part.source).join('');
    source += strings[index + 1] ?? '';
  }
  return new Html(source);
}

const entities: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

/** Style, script and body of a page. */
export interface PageContent {
  readonly title: string;
  readonly css: string;
  /** Inline script, which may connect to the service itself. Default: the page has no script. */
  readonly script?: string;
  readonly body: Html;
}

/** Returns a complete page of the service, with headers that forbid framing, caching and referrers. */
export function document(status: number, { title, css, script, body }: PageContent): Reply {
  const hash = (text: string) => `'sha256-${createHash('sha256').update(text).digest('base64')}'`;
  // No form-action: Chromium applies it to every redirect that follows the form, which would block the way back to the application and
  // the redirects of the application itself.
  const policy = [
    "default-src 'none'",
    `style-src ${hash(css)}`,
    ...(script === undefined ? [] : [`script-src ${hash(script)}`, "connect-src 'self'"]),
    'img-src data:',
    "base-uri 'none'",
    "frame-ancestors 'none'",
  ];
  const { source } = html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${title}</title>
<link rel="icon" href="data:,">
<style>${new Html(css)}</style>
</head>
<body>
${body}
${script === undefined ? html`` : new Html(`<script>${script}</script>`)}
</body>
</html>
`;
  const headers = {
    'content-type': 'text/html; charset=utf-8',
    'cache-control': 'no-store',
    'content-security-policy': policy.join('; '),
    'x-frame-options': 'DENY',
    'x-content-type-options': 'nosniff',
    // With no-referrer, a form without script is sent with the origin null, and so would look like one of a foreign page.
    'referrer-policy': script === undefined ? 'no-referrer' : 'same-origin',
  };
  return { status, headers, body: source };
}

/** Returns a page with one card, for the consent page and its errors. */
export function page(status: number, title: string, main: Html): Reply {
  const body = html`<main>
${main}
</main>
<footer>Emulated service with sample data</footer>`;
  return document(status, { title, css, body });
}
