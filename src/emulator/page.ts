import { createHash } from 'node:crypto';
import { css } from './page-style.js';
import type { Reply } from './reply.js';

/** A piece of HTML in which everything from outside is escaped. */
export class Html {
  readonly source: string;

  constructor(source: string) {
    this.source = source;
  }
}

/** Template tag: values are escaped unless they are `Html` themselves; a list is put together. */
export function html(strings: TemplateStringsArray, ...values: readonly (string | Html | readonly Html[])[]): Html {
  let source = strings[0] ?? '';
  values.forEach((value, index) => {
    source += sourceOf(value) + (strings[index + 1] ?? '');
  });
  return new Html(source);
}

function sourceOf(value: string | Html | readonly Html[]): string {
  if (typeof value === 'string') return escaped(value);
  return value instanceof Html ? value.source : value.map((part) => part.source).join('');
}

const entities: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

function escaped(text: string): string {
  return text.replace(/[&<>"']/g, (character) => entities[character] ?? '');
}

// There is no form-action: Chromium applies it to every redirect after the form was sent, and would so forbid the way back to the
// application, and on from there to wherever the application sends its user.
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

/** A whole page of the service, with the headers that keep it out of frames, caches and referrers. */
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
