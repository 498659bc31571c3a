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
  for (let index = 0; index < users; index += 1)
    cookies.push(await logIn(connection, { port, user: String(index + 1) }));
  connection.close();
  return cookies;
}

/**
 * Makes so many requests over so many connections; each connection sends the next one when it has its answer.
 *
 * @param {{ ports: number[], path: string, headers: Record<string, string>[], requests: number, connections: number, users?: number }} task
 *   `headers`: of the requests in turn, over all connections; `users`: instead of them, `x-user` with a random number up to this; `withinMs`: the connections
 *   begin one after the other in this time
 */
async function run({ ports, path, headers, users, requests, connections, withinMs = 0, keepLatencies = false }) {
  const open = Array.from({ length: connections }, (_none, index) => {
    const port = ports[index % ports.length];
    return { connection: new Connection({ port }), texts: textsFor(path, port, headers, users) };
  });
  const counted = { statuses: {}, latencies: [], left: requests, next: 0 };
  const start = performance.now();
  await Promise.all(
    open.map(async (one, index) => {
      if (withinMs > 0) await pause((withinMs * index) / connections);
      await sendInTurn(one, counted);
    }),
  );
  const durationMs = performance.now() - start;
  for (const { connection } of open) connection.close();
  const { statuses, latencies } = counted;
  return { durationMs, statuses, ...latencyOf(latencies), ...(keepLatencies ? { latencies } : {}) };
}

function textsFor(path, port, headers, users) {
  if (users === undefined) {
    const texts = headers.map((one) => getRequest(path, port, one));
    return (index) => texts[index % texts.length];
  }
  return () => getRequest(path, port, { 'x-user': String(1 + Math.floor(Math.random() * users)) });
}

async function sendInTurn({ connection, texts }, counted) {
  while (counted.left > 0) {
    counted.left -= 1;
    counted.next += 1;
    const since = performance.now();
    const { status } = await connection.send(texts(counted.next));
    counted.latencies.push(performance.now() - since);
    counted.statuses[status] = (counted.statuses[status] ?? 0) + 1;
  }
}

/** Logs in so many times, several at once, as one user after the other, each on the connections of the one before. */
async function runLogIns({ port, requests, connections, users = 100 }) {
  const counted = { latencies: [], left: requests };
  const start = performance.now();
  await Promise.all(
    Array.from({ length: connections }, async () => {
      const connection = new Connection({ port });
      while (counted.left > 0) {
        counted.left -= 1;
        const since = performance.now();
        await logIn(connection, { port, user: String((counted.left % users) + 1) });
        counted.latencies.push(performance.now() - since);
      }
      connection.close();
    }),
  );
  return { durationMs: performance.now() - start, statuses: { 302: requests }, ...latencyOf(counted.latencies) };
}

function latencyOf(latencies) {
  return { p50Ms: quantile(latencies, 0.5), p99Ms: quantile(latencies, 0.99), lastMs: quantile(latencies, 1) };
}
