import { isRecord } from './checks.js';
import { parseQuery } from './incoming-request.js';

const secretName = /secret|token|code|verifier|password|assertion|authorization|cookie/i;
const longRun = /[\w.~+/-]{24,}/g;
const maxLength = 4000;

/**
 * Returns a body or a query as readable text without secrets: the values of secret fields, and everything that looks like a token, are
 * shortened.
 */
export function shortened(value: unknown): string {
  if (value instanceof Uint8Array) return `${value.byteLength} bytes`;
  const form = typeof value === 'string' && /^[\w.-]+=/.test(value) ? parseQuery(value) : undefined;
  const shown = form ?? value;
  const text = typeof shown === 'string' ? shortenRuns(shown) : JSON.stringify(withoutSecrets(shown, ''), undefined, 2);
  return text.length > maxLength ? `${text.slice(0, maxLength)}…` : text;
}

function withoutSecrets(value: unknown, name: string): unknown {
  if (Array.isArray(value)) return value.map((item) => withoutSecrets(item, name));
  if (isRecord(value)) {
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, withoutSecrets(item, key)]));
  }
  if (typeof value !== 'string') return value;
  return secretName.test(name) && !/_(type|method)$/.test(name) ? shorten(value) : shortenRuns(value);
}

function shortenRuns(text: string): string {
  return text.replace(longRun, (run) => (/\d/.test(run) && !run.includes('//') ? shorten(run) : run));
}

function shorten(text: string): string {
  return text.length > 8 ? `${text.slice(0, 4)}…` : '…';
}
