const secrets = new Set(['client_secret', 'code', 'code_verifier', 'refresh_token', 'access_token', 'state']);

/** Returns the beginning of a secret and, if it is long, its end: enough to tell two secrets apart. */
export function shortened(secret: string): string {
  return `${secret.slice(0, 4)}…${secret.length >= 32 ? secret.slice(-4) : ''}`;
}

/** Returns the fields of a query or body as text, with secrets shortened. */
export function shortenedFields(fields: Readonly<Record<string, unknown>>): string {
  return Object.entries(fields)
    .map(([name, value]) => `${name}=${secrets.has(name) ? shortened(String(value)) : String(value)}`)
    .join(' ');
}
