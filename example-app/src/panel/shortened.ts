const secrets = new Set(['client_secret', 'code', 'code_verifier', 'refresh_token', 'access_token', 'state']);

/** The beginning of a secret and, where it is long, its end: enough to see whether it is another one than before. */
export function shortened(secret: string): string {
  return `${secret.slice(0, 4)}…${secret.length >= 32 ? secret.slice(-4) : ''}`;
}

/** The fields of a query or body, one after the other, with the secrets among them shortened. */
export function shortenedFields(fields: Readonly<Record<string, unknown>>): string {
  return Object.entries(fields)
    .map(([name, value]) => `${name}=${secrets.has(name) ? shortened(String(value)) : String(value)}`)
    .join(' ');
}
