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

// No form-action: Chromium applies it to every redirect that follows the form, which would block the way back to the application and
// the redirects of the application itself.
const policy = [
  "default-src 'none'",
  `style-src 'sha256-${createHash('sha256').update(css).digest('base64')}'`,
  'img-src data:',
  "base-uri 'none'",
  "frame-ancestors 'none'",
].join('; ');

const headers = {
  'content-type': 'text/html; charset=utf-8',
  'cache-control': 'no-store',
  'content-security-policy': policy,
  'x-frame-options': 'DENY',
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
};

/** Returns a complete page of the service, with headers that forbid framing, caching and referrers. */
export function page(status: number, title: string, main: Html): Reply {
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
<main>
${main}
</main>
<footer>Emulated service with sample data, on this computer only</footer>
</body>
</html>
`;
  return { status, headers, body: source };
}
