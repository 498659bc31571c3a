import { type ChildProcess, execFileSync, type SpawnOptions } from 'node:child_process';
import { once } from 'node:events';
import { accessSync, constants } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { delimiter, join } from 'node:path';
import { hasEnded, startProgram } from './program.js';

/** What to start, and how to tell that it is ready. */
export interface ServiceCommand {
  readonly file: string;
  readonly args: readonly string[];
  readonly options?: SpawnOptions;
  /** A line of its output that says so. */
  readonly ready: RegExp;
}

/** Starts a service and resolves when it says that it is ready; rejects with its last words if it ends before. */
export async function startService({ file, args, options, ready }: ServiceCommand): Promise<ChildProcess> {
  const { child, says } = startProgram(file, args, options);
  await says(ready);
  return child;
}

/** Sends the signal and resolves when the process has ended; at once if it had ended before. */
export async function endService(child: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  if (hasEnded(child)) return;
  const ended = once(child, 'exit');
  child.kill(signal);
  // One that a test has frozen acts on no signal but SIGKILL before it goes on.
  child.kill('SIGCONT');
  await ended;
}

/** The ids of a user under which a service runs that refuses to run as root; none where the tests do not run as root. */
export function userIds(name: string): { readonly uid: number; readonly gid: number } | { readonly uid?: undefined } {
  if (process.getuid?.() !== 0) return {};
  const id = (flag: string): number => Number(execFileSync('id', [flag, name], { encoding: 'utf8' }));
  return { uid: id('-u'), gid: id('-g') };
}

/** Where free ports are looked for: below those that systems give to connections and to listeners on port 0, which would take one meanwhile. */
const PORTS = { first: 12_000, perProcess: 50, processes: 200 };

/** The ports of this process: the first one of them is listened on as long as it lives, so that no other process gives them away. */
let ownPorts: Promise<number> | undefined;
let given = 0;

/**
 * A TCP port that is free, and that no other process of the tests takes for free; so is the one 10,000 above it, which a node of a
 * Redis Cluster takes too. A process gets each of its ports in turn.
 */
export async function freePort(): Promise<number> {
  ownPorts ??= claimPorts();
  const first = await ownPorts;
  for (let tries = 1; tries < PORTS.perProcess; tries += 1) {
    given = (given % (PORTS.perProcess - 1)) + 1;
    const port = first + given;
    if ((await isFree(port)) && (await isFree(port + 10_000))) return port;
  }
  throw new Error(`All ports from ${first} on are taken`);
}

/** Resolves to the first one of the ports that this process has from now on until its end. */
async function claimPorts(): Promise<number> {
  for (let tries = 0; tries < PORTS.processes; tries += 1) {
    const first = PORTS.first + ((process.pid + tries) % PORTS.processes) * PORTS.perProcess;
    if (await listenOn(first)) return first;
  }
  throw new Error('Every port that tests use is taken');
}

async function isFree(port: number): Promise<boolean> {
  const server = await listenOn(port);
  if (!server) return false;
  server.close();
  await once(server, 'close');
  return true;
}

/** A server that listens on a port of all interfaces and keeps no process alive; `undefined` if the port is taken. */
async function listenOn(port: number): Promise<Server | undefined> {
  const server = createServer().listen(port).unref();
  try {
    await once(server, 'listening');
    return server;
  } catch {
    return undefined;
  }
}

/** The path of an executable, looked for in `folders` and then in PATH; `undefined` if there is none. */
export function findExecutable(name: string, folders: readonly string[] = []): string | undefined {
  const all = [...folders, ...(process.env.PATH ?? '').split(delimiter)];
  return all.map((folder) => join(folder, name)).find(isExecutable);
}

/** Whether the service is there. Where the variable is 1, its absence is an error, so that no test is skipped. */
export function isInstalled(name: string, path: string | undefined, variable = 'REQUIRE_SERVICES'): boolean {
  if (path === undefined && process.env[variable] === '1') throw new Error(`${name} is not installed`);
  return path !== undefined;
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
