/** A field of a parsed answer; `undefined` where it is no object, or has no such field of its own. */
export function field(value: unknown, name: string): unknown {
  const isThere = typeof value === 'object' && value !== null && Object.hasOwn(value, name);
  return isThere ? Reflect.get(value, name) : undefined;
}
