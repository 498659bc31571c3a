import { setTimeout as pause } from 'node:timers/promises';
import { Connection, getRequest } from './connection.mjs';
import { logIn } from './log-in.mjs';
import { quantile } from './statistics.mjs';
import { answerTasks } from './tasks.mjs';

/** The process that makes requests. */
answerTasks(undefined, { logIns, run, runLogIns });

/** Logs so many users in, and gives their cookies. */
async function logIns({ port, users }) {
  const cookies = [];
  const connection = new Connection({ port });
  for (let user = 1; user <= users; user += 1) cookies.push(await logIn(connection, { port, user: String(user) }));
  connection.close();
  return cookies;
}

/**
 * Makes so many requests over so many connections; each connection sends the next one when it has its answer.
 *
 * @param {{ ports: number[], path: string, headers: Record<string, string>[], requests: number, connections: number, users?: number, withinMs?: number }} task
 *   `headers`: of the requests in turn, over all connections; `users`: instead of them, `x-user` with a random number up to this;
 *   `withinMs`: the connections begin one after the other in this time
 */
async function run({ ports, path, headers, users, requests, connections, withinMs = 0 }) {
  const textsFor = (port) => {
    const texts = headers?.map((one) => getRequest(path, port, one));
    const random = () => ({ 'x-user': String(1 + Math.floor(Math.random() * users)) });
    return (index) => texts?.[index % texts.length] ?? getRequest(path, port, random());
  };
  const texts = new Map(ports.map((port) => [port, textsFor(port)]));
  return await inTurn({ ports, requests, connections, withinMs }, async (connection, port, index) => {
    const { status } = await connection.send(texts.get(port)(index));
    return status;
  });
}

/** Logs in so many times, several at once, as one user after the other, each on the connections of the one before. */
async function runLogIns({ port, requests, connections, users = 100 }) {
  return await inTurn({ ports: [port], requests, connections }, async (connection, _port, index) => {
    await logIn(connection, { port, user: String((index % users) + 1) });
    return 302;
  });
}

/** Does so many things over so many connections, and times them. @param {(connection: Connection, port: number, index: number) => Promise<number>} send gives a status */
async function inTurn({ ports, requests, connections, withinMs = 0 }, send) {
  const opened = Array.from({ length: connections }, (_none, index) => {
    const port = ports[index % ports.length];
    return { port, connection: new Connection({ port }) };
  });
  const statuses = {};
  const latencies = [];
  let begun = 0;
  const start = performance.now();
  const work = async ({ connection, port }, place) => {
    if (withinMs > 0) await pause((withinMs * place) / connections);
    while (begun < requests) {
      begun += 1;
      const since = performance.now();
      const status = await send(connection, port, begun);
      latencies.push(performance.now() - since);
      statuses[status] = (statuses[status] ?? 0) + 1;
    }
  };
  await Promise.all(opened.map(work));
  const durationMs = performance.now() - start;
  for (const { connection } of opened) connection.close();
  const [p50Ms, p99Ms, lastMs] = [0.5, 0.99, 1].map((share) => quantile(latencies, share));
  return { durationMs, statuses, p50Ms, p99Ms, lastMs };
}
