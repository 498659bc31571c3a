import { getHeapSnapshot, setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

const UUID = /[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}/g;

/**
 * Returns the UUIDs in all strings that this process still holds, after a garbage collection: what a test has made as an
 * id of its own, and nobody may keep. A string that a test itself holds counts too; a `Buffer` of it does not.
 */
export async function heldUuids(): Promise<ReadonlySet<string>> {
  const found = new Set<string>();
  let end = '';
  for await (const part of getHeapSnapshot().setEncoding('utf8')) {
    const text = `${end}${part}`;
    for (const [uuid] of text.matchAll(UUID)) found.add(uuid);
    end = text.slice(-35);
  }
  return found;
}

/** Returns the bytes that are in use, after a garbage collection. */
export async function heapBytes(): Promise<number> {
  for (let times = 0; times < 4; times++) {
    collectGarbage();
    await new Promise((resolve) => setImmediate(resolve));
  }
  return process.memoryUsage().heapUsed;
}
