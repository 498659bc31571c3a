/** Returns a tenant in its canonical form; `undefined` for what no tenant is called. */
export function canonicalTenant(value: unknown): string | undefined {
  if (typeof value !== 'string') return undefined;
  const name = value.toLowerCase();
  // A name of dots alone would leave the path of a callback URL.
  return /^(?=.*[a-z0-9])[a-z0-9._-]{1,253}$/.test(name) && name.length === value.length ? name : undefined;
}
