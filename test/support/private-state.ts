import { Session } from 'node:inspector';
import { promisify } from 'node:util';

interface RemoteObject {
  readonly type: string;
  readonly subtype?: string;
  readonly className?: string;
  readonly objectId?: string;
}

interface Property {
  readonly name: string;
  readonly value?: RemoteObject;
}

/** Runs in place, with the object as `this`. Returns -1 for one that was seen before, and else its size, if it has one. */
const VISIT = `function () {
  if (globalThis.inspected.seen.has(this)) return -1;
  globalThis.inspected.seen.add(this);
  return this instanceof Map || this instanceof Set ? this.size : undefined;
}`;

const VALUES = 'function () { return [...this.values()]; }';

/**
 * Returns the sizes of all maps and sets that an object holds, in private fields too, without the empty ones: what is
 * kept by id must be gone at the end. Keys are the paths of fields. Fields named in `except` are left out.
 */
export async function heldEntries(root: object, except: readonly string[]): Promise<Readonly<Record<string, number>>> {
  const session = new Session();
  session.connect();
  const post = promisify(session.post.bind(session) as never) as (method: string, params: object) => Promise<object>;
  const sizes: Record<string, number> = {};
  const walk = async ({ type, subtype, className, objectId }: RemoteObject, path: string): Promise<void> => {
    if (type !== 'object' || objectId === undefined || className === 'Promise') return;
    const visited = await post('Runtime.callFunctionOn', { objectId, functionDeclaration: VISIT });
    const size = (visited as { result: { value?: number } }).result.value;
    if (size !== undefined && size > 0) {
      sizes[path] = (sizes[path] ?? 0) + size;
      const values = await post('Runtime.callFunctionOn', { objectId, functionDeclaration: VALUES });
      await walkFields((values as { result: RemoteObject }).result, path);
    }
    if (size === undefined && subtype === undefined) await walkFields({ type, objectId }, path);
  };
  const walkFields = async ({ objectId }: RemoteObject, path: string): Promise<void> => {
    const found = await post('Runtime.getProperties', { objectId, ownProperties: true });
    const { result, privateProperties = [] } = found as { result: Property[]; privateProperties?: Property[] };
    for (const { name, value } of [...privateProperties, ...result]) {
      if (value && !except.includes(name)) await walk(value, path === '' ? name : `${path}.${name}`);
    }
  };
  const holder = globalThis as { inspected?: { readonly root: object; readonly seen: Set<object> } };
  try {
    holder.inspected = { root, seen: new Set() };
    const { result } = (await post('Runtime.evaluate', { expression: 'inspected.root' })) as { result: RemoteObject };
    await walk(result, '');
    return sizes;
  } finally {
    delete holder.inspected;
    session.disconnect();
  }
}
