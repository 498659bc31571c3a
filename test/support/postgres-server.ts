import { type ChildProcess, execFile } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import { chmod, chown, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { endService, findExecutable, freePort, isInstalled, startService, userIds } from './service-process.js';

/** A PostgreSQL of the tests' own, with one database and one role, both named postgres. */
export interface PostgresServer {
  readonly connectionString: string;
  readonly port: number;
  /** Of the postmaster that runs now; a restart changes it. */
  readonly pid: number;
  /** Ends it for good and removes its data. May be called at any time, and more than once. */
  stop(): Promise<void>;
  /** Ends it at once, every connection cut; the data stays, every commit that was answered included. */
  kill(): Promise<void>;
  /** Ends it if it runs, and starts it on the same port with the same data. */
  restart(): Promise<void>;
}

/** Debian and Ubuntu keep the server's programs out of PATH, in a folder for each version. */
const DEBIAN = '/usr/lib/postgresql';
const folders = existsSync(DEBIAN)
  ? readdirSync(DEBIAN)
      .sort((a, b) => Number(b) - Number(a))
      .map((version) => join(DEBIAN, version, 'bin'))
  : [];
const executable = findExecutable('postgres', folders);
const initdb = findExecutable('initdb', folders);

/** Whether PostgreSQL is installed; see {@link isInstalled}. For `describe.skipIf(!hasPostgres())`. */
export function hasPostgres(): boolean {
  return isInstalled('postgres', executable);
}

/** Starts PostgreSQL on a free port, with its data in a folder of its own. Takes a few seconds. */
export async function startPostgres(): Promise<PostgresServer> {
  const folder = await mkdtemp(join(tmpdir(), 'postgres-'));
  // It refuses to run as root: there it runs as the user that its package made.
  const owner = userIds('postgres');
  if (owner.uid !== undefined) await chown(folder, owner.uid, owner.gid);
  await chmod(folder, 0o700);
  const port = await freePort();
  await createCluster(folder, owner);
  let child = await launch(port, folder, owner);
  return {
    connectionString: `postgres://postgres@127.0.0.1:${port}/postgres`,
    port,
    get pid() {
      return child.pid ?? 0;
    },
    stop: async () => {
      await endService(child, 'SIGQUIT');
      await rm(folder, { recursive: true, force: true });
    },
    kill: () => endService(child, 'SIGQUIT'),
    restart: async () => {
      await endService(child, 'SIGINT');
      child = await launch(port, folder, owner);
    },
  };
}

async function createCluster(folder: string, owner: ReturnType<typeof userIds>): Promise<void> {
  const args = ['-D', join(folder, 'data'), '-U', 'postgres', '-A', 'trust', '-E', 'UTF8', '--locale=C', '--no-sync'];
  await promisify(execFile)(initdb ?? 'initdb', args, { ...owner, cwd: folder });
}

async function launch(port: number, folder: string, owner: ReturnType<typeof userIds>): Promise<ChildProcess> {
  // Only a crash of the whole machine can lose data without fsync; a killed server loses none.
  const settings = [
    'fsync=off',
    'full_page_writes=off',
    'listen_addresses=127.0.0.1',
    `unix_socket_directories=${folder}`,
  ];
  const args = ['-D', join(folder, 'data'), '-p', `${port}`, ...settings.flatMap((setting) => ['-c', setting])];
  const ready = /database system is ready to accept connections/;
  return startService({ file: executable ?? 'postgres', args, options: { ...owner, cwd: folder }, ready });
}
