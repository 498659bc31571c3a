import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { onTestFinished } from 'vitest';

/** Stands between clients and a server. */
export interface Wire {
  readonly port: number;
  /** The next answer of the server is lost, and its connection breaks. */
  loseAnswer(): void;
  /** From now on the server gets nothing of what clients send. */
  hold(): void;
  /** Gives the server what was held back. */
  deliver(): void;
  /** Breaks the connections on which a client has sent this text, and from now on each that does. */
  cut(text: string): void;
  /** Lets all connections live again. */
  mend(): void;
  /** How many connections are open on which a client has sent this text. */
  count(text: string): number;
  /** How many of them the server has sent this text on. */
  answered(text: string): number;
}

/** Starts a wire to a port. It ends with the test. */
export async function startWire(target: number): Promise<Wire> {
  let losesAnswer = false;
  let held: (() => void)[] | undefined;
  const sockets = new Set<Socket>();
  /** What each client has sent. */
  const sent = new Map<Socket, string>();
  let forbidden: string | undefined;
  /** What each client has got. */
  const got = new Map<Socket, string>();
  const having = (text: string) => [...sent].flatMap(([socket, words]) => (words.includes(text) ? [socket] : []));
  const server = createServer((client) => {
    const upstream = connect(target, '127.0.0.1');
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      const other = socket === client ? upstream : client;
      socket.on('error', () => {}).on('close', () => other.destroy());
    }
    client.on('close', () => sent.delete(client) && got.delete(client));
    client.on('data', (bytes) => {
      sent.set(client, (sent.get(client) ?? '') + bytes.toString('latin1'));
      if (forbidden !== undefined && having(forbidden).includes(client)) client.destroy();
      else if (held) held.push(() => upstream.write(bytes));
      else upstream.write(bytes);
    });
    upstream.on('data', (bytes) => {
      got.set(client, (got.get(client) ?? '') + bytes.toString('latin1'));
      if (losesAnswer) client.destroy();
      else client.write(bytes);
      losesAnswer = false;
    });
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return {
    port: (server.address() as AddressInfo).port,
    loseAnswer: () => {
      losesAnswer = true;
    },
    hold: () => {
      held = [];
    },
    deliver: () => {
      for (const write of held ?? []) write();
      held = undefined;
    },
    cut: (text) => {
      forbidden = text;
      for (const client of having(text)) client.destroy();
    },
    mend: () => {
      forbidden = undefined;
    },
    count: (text) => having(text).length,
    answered: (text) => having(text).filter((client) => got.get(client)?.includes(text)).length,
  };
}
