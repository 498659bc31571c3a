import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, chownSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import pg from 'pg';
import { createClient } from 'redis';
import { onCore } from './cores.mjs';

/** Debian and Ubuntu keep the server's programs out of PATH, in a folder for each version. */
const DEBIAN = '/usr/lib/postgresql';

/** Clock ticks of the kernel in a second: 100 on all machines that Node runs on. */
const TICKS = 100;

/**
 * @typedef {object} Database
 * @property {string} url
 * @property {{ redisUrl?: string, postgresUrl?: string }} options of an application over it
 * @property {() => number | Promise<number>} cpuUs of the server so far
 * @property {() => Promise<void>} stop
 */

/**
 * Starts a Redis of our own on a free port of loopback, without files.
 *
 * @param {{ core?: string }} [options] `core`: the only one that it runs on
 * @returns {Promise<Database>}
 */
export async function startRedis({ core } = {}) {
  const port = await freePort();
  const options = ['--port', String(port), '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no'];
  const [program, ...before] = [...onCore(core), 'redis-server'];
  const server = startServer(program, [...before, ...options], { stdio: 'ignore' }, 'SIGTERM');
  const url = `redis://127.0.0.1:${port}`;
  await answering(async () => {
    const client = createClient({ url, socket: { reconnectStrategy: false } }).on('error', () => {});
    (await client.connect()).destroy();
  });
  const cpuUs = async () => {
    const client = await redisClient(url);
    const seconds = [...(await client.info('cpu')).matchAll(/used_cpu_(?:user|sys):([\d.]+)/g)];
    client.destroy();
    return seconds.reduce((sum, [, one]) => sum + Number(one), 0) * 1e6;
  };
  return { url, options: { redisUrl: url }, cpuUs, stop: server.stop };
}

/** A connected client. */
export async function redisClient(url) {
  return await createClient({ url })
    .on('error', () => {})
    .connect();
}

/**
 * Starts a PostgreSQL of our own on a free port of loopback, with its data in a folder that ends with it. Under root, it runs as the
 * user that its package has made: it refuses to run as root.
 *
 * @returns {Promise<Database | undefined>} `undefined` where none is installed
 */
export async function startPostgres() {
  const [initdb, postgres] = ['initdb', 'postgres'].map(programOf);
  const owner = ownerIds();
  if (initdb === undefined || postgres === undefined || owner === undefined) return undefined;
  const folder = mkdtempSync(join(tmpdir(), 'bench-postgres-'));
  if (owner.uid !== undefined) chownSync(folder, owner.uid, owner.gid);
  chmodSync(folder, 0o700);
  const data = join(folder, 'data');
  const start = { ...owner, cwd: folder, stdio: 'ignore' };
  execFileSync(initdb, ['-D', data, '-U', 'postgres', '-A', 'trust', '-E', 'UTF8', '--locale=C', '--no-sync'], start);
  const port = await freePort();
  // As it is installed, save for the log of commits, which would measure the disk.
  const settings = ['synchronous_commit=off', 'listen_addresses=127.0.0.1', `unix_socket_directories=${folder}`];
  const args = [...settings, 'max_connections=400'].flatMap((one) => ['-c', one]);
  const server = startServer(postgres, ['-D', data, '-p', String(port), ...args], start, 'SIGQUIT');
  const url = `postgres://postgres@127.0.0.1:${port}/postgres`;
  await answering(async () => {
    const client = new pg.Client({ connectionString: url }).on('error', () => {});
    await client.connect();
    await client.end();
  });
  const stop = async () => {
    await server.stop();
    rmSync(folder, { recursive: true, force: true });
  };
  return { url, options: { postgresUrl: url }, cpuUs: () => cpuOf(server.pid), stop };
}

/**
 * Plays something over Redis, and over PostgreSQL where it is installed.
 *
 * @template T
 * @param {(store: string, database: Database) => Promise<T[]>} play
 * @returns {Promise<T[]>}
 */
export async function overDatabases(play) {
  const played = [];
  for (const [store, start] of Object.entries({ Redis: startRedis, PostgreSQL: startPostgres })) {
    const database = await start();
    if (database === undefined) continue;
    try {
      played.push(...(await play(store, database)));
    } finally {
      await database.stop();
    }
  }
  return played;
}

/** The version that is installed, if one is. */
export function postgresVersion() {
  const postgres = programOf('postgres');
  return postgres && /([\d.]+)/.exec(execFileSync(postgres, ['--version'], { encoding: 'utf8' }))?.[1];
}

function programOf(name) {
  const versions = existsSync(DEBIAN) ? readdirSync(DEBIAN).sort((a, b) => Number(b) - Number(a)) : [];
  const folders = [...(process.env.PATH ?? '').split(delimiter), ...versions.map((one) => join(DEBIAN, one, 'bin'))];
  return folders.map((folder) => join(folder, name)).find((file) => existsSync(file));
}

/** @returns {{ uid?: number, gid?: number } | undefined} `undefined`: we are root, and there is no such user */
function ownerIds() {
  if (process.getuid?.() !== 0) return {};
  const [, uid, gid] = /^postgres:[^:]*:(\d+):(\d+)/m.exec(readFileSync('/etc/passwd', 'utf8')) ?? [];
  return uid === undefined ? undefined : { uid: Number(uid), gid: Number(gid) };
}

/** A port of loopback that nobody listens on. */
async function freePort() {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address();
  server.close();
  return port;
}

/** Starts a server that does not outlive us, however we end. */
function startServer(program, args, options, signal) {
  const server = spawn(program, args, options);
  const exited = once(server, 'exit');
  const end = () => server.kill(signal);
  process.once('exit', end);
  const stop = async () => {
    process.off('exit', end);
    end();
    await exited;
  };
  return { pid: server.pid, stop };
}

async function answering(connect) {
  for (let tries = 0; ; tries += 1) {
    try {
      return await connect();
    } catch (error) {
      if (tries === 200) throw error;
      await pause(50);
    }
  }
}

/** The postmaster, and one process for each connection; what has ended counts as its parent's. */
function cpuOf(postmaster) {
  let ticks = 0;
  for (const name of readdirSync('/proc').filter((one) => /^\d+$/.test(one))) {
    try {
      const text = readFileSync(`/proc/${name}/stat`, 'utf8');
      // After the name in brackets: state, parent, …; the eleventh to the fourteenth are utime, stime, cutime and cstime.
      const fields = text
        .slice(text.lastIndexOf(')') + 2)
        .split(' ')
        .map(Number);
      if (Number(name) !== postmaster && fields[1] !== postmaster) continue;
      ticks += fields[11] + fields[12] + fields[13] + fields[14];
    } catch {
      // It has ended meanwhile.
    }
  }
  return (ticks * 1e6) / TICKS;
}
