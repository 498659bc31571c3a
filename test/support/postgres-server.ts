import { execFile } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { type DataServer, type Owner, startDataServer } from './data-server.js';
import { findExecutable, isInstalled } from './service-process.js';

/** A PostgreSQL of the tests' own, with one database and one role, both named postgres. Its process is the postmaster. */
export interface PostgresServer extends DataServer {
  readonly connectionString: string;
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
export const hasPostgres = (): boolean => isInstalled('postgres', executable);

/** Debian's libfaketime, in the folder of the machine's architecture. */
const faketime = ['x86_64', 'aarch64']
  .map((machine) => `/usr/lib/${machine}-linux-gnu/faketime/libfaketime.so.1`)
  .find((path) => existsSync(path));

/** Whether a server's clock can be set. For `test.skipIf(!hasFaketime())`. */
export const hasFaketime = (): boolean => isInstalled('libfaketime', faketime);

/** Settings of a server of the tests. */
export interface PostgresSettings {
  /** Time zone of the server, from the `tz` database. Default: that of the machine. */
  readonly timeZone?: string;
  /** What the server's clock shows when it starts; see {@link hasFaketime}. Default: the machine's clock. */
  readonly startsAt?: Date;
}

/** Starts PostgreSQL on a free port, with its data in a folder of its own. Takes a few seconds. */
export async function startPostgres({ timeZone, startsAt }: PostgresSettings = {}): Promise<PostgresServer> {
  // An offset, not a time: each connection has a process of its own, and all have to show the same.
  const offset = startsAt && Math.round((startsAt.getTime() - Date.now()) / 1000);
  const clock = { LD_PRELOAD: faketime, FAKETIME: `${offset}`, FAKETIME_DONT_FAKE_MONOTONIC: '1' };
  const server = await startDataServer({
    name: 'postgres',
    user: 'postgres',
    prepare: { program: initdb ?? 'initdb', run: install },
    command: (folder, port, owner) => {
      // Only a crash of the whole machine can lose data without fsync; a killed server loses none.
      const settings = ['fsync=off', 'full_page_writes=off', 'listen_addresses=127.0.0.1'];
      settings.push(`unix_socket_directories=${folder}`, ...(timeZone ? [`timezone=${timeZone}`] : []));
      const all = settings.flatMap((setting) => ['-c', setting]);
      return {
        file: executable ?? 'postgres',
        args: ['-D', join(folder, 'data'), '-p', `${port}`, ...all],
        options: { ...owner, cwd: folder, env: { ...process.env, ...(offset === undefined ? {} : clock) } },
        ready: /database system is ready to accept connections/,
      };
    },
    killSignal: 'SIGQUIT',
    endSignal: 'SIGINT',
  });
  return Object.assign(server, { connectionString: `postgres://postgres@127.0.0.1:${server.port}/postgres` });
}

function install(folder: string, owner: Owner): Promise<unknown> {
  const args = ['-D', join(folder, 'data'), '-U', 'postgres', '-A', 'trust', '-E', 'UTF8', '--locale=C', '--no-sync'];
  return promisify(execFile)(initdb ?? 'initdb', args, { ...owner, cwd: folder });
}
