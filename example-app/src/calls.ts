import type { Worker } from 'node:cluster';

/** A call, or an answer, which has no name. */
type Message = readonly [id: number, name: string, args: readonly unknown[]];

/**
 * Returns the functions of the other process, and lets it call those of this one. A call resolves to what the other process
 * returns; to nothing if that one is gone, or goes meanwhile.
 *
 * @param own Returns the functions of this process, which may need those of the other one themselves.
 */
export function connect<Theirs extends object>(channel: Worker | NodeJS.Process, own: () => object): Theirs {
  const waiting = new Map<number, (result: unknown) => void>();
  let count = 0;
  const isOpen = () => ('isConnected' in channel ? channel.isConnected() : channel.connected);
  // A process that is about to end may have closed its channel already: it misses the message.
  const send = (...message: Message) => isOpen() && channel.send?.(message, undefined, undefined, () => {});
  channel.on('disconnect', () => {
    for (const resolve of waiting.values()) resolve(undefined);
  });
  channel.on('message', async ([id, name, args]: Message) => {
    if (name !== '') return send(id, '', [await Reflect.get(own(), name)?.(...args)]);
    waiting.get(id)?.(args[0]);
    waiting.delete(id);
  });
  const named = (name: string) => {
    return async function call(...args: unknown[]) {
      count += 1;
      if (send(count, name, args) !== false) return await new Promise((resolve) => waiting.set(count, resolve));
    };
  };
  // Who awaits it must not take it for a promise.
  return new Proxy({} as Theirs, { get: (_, name) => (name === 'then' ? undefined : named(String(name))) });
}
