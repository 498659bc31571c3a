import { type ChildProcess, execFile } from 'node:child_process';
import { chown, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { endService, findExecutable, freePort, isInstalled, startService, userIds } from './service-process.js';

/** A MariaDB of the tests' own, with one database named grants and one user named app. */
export interface MariadbServer {
  /** Takes the options of a pool in its query part. */
  readonly uri: string;
  readonly port: number;
  readonly pid: number;
  /** Ends it for good and removes its data. May be called more than once. */
  stop(): Promise<void>;
  /** Ends it by SIGKILL; the data stays, every commit that was answered included. */
  kill(): Promise<void>;
  /** Ends it if it runs, and starts it on the same port with the same data. */
  restart(): Promise<void>;
}

/** Debian keeps the server out of PATH. */
const executable = findExecutable('mariadbd', ['/usr/sbin']);
const installer = findExecutable('mariadb-install-db');

/** Whether MariaDB is installed; see {@link isInstalled}. For `describe.skipIf(!hasMariadb())`. */
export function hasMariadb(): boolean {
  return isInstalled('mariadbd', installer && executable);
}

/** Starts MariaDB on a free port, with its data in a folder of its own. Takes a few seconds. */
export async function startMariadb(): Promise<MariadbServer> {
  const folder = await mkdtemp(join(tmpdir(), 'mariadb-'));
  // It refuses to run as root: there it runs as the user that its package made.
  const owner = userIds('mysql');
  if (owner.uid !== undefined) await chown(folder, owner.uid, owner.gid);
  const port = await freePort();
  const data = join(folder, 'data');
  const defaults = ['--no-defaults', `--datadir=${data}`];
  const install = ['--skip-test-db', '--auth-root-authentication-method=normal'];
  await promisify(execFile)(installer ?? 'mariadb-install-db', [...defaults, ...install], { ...owner, cwd: folder });
  const settings = [
    `--port=${port}`,
    '--bind-address=127.0.0.1',
    `--socket=${join(folder, 'socket')}`,
    `--pid-file=${join(folder, 'pid')}`,
    // Only a crash of the whole machine can lose data so; a killed server loses none.
    '--innodb-flush-log-at-trx-commit=2',
    '--innodb-buffer-pool-size=16M',
    `--init-file=${join(folder, 'init.sql')}`,
  ];
  await writeFile(
    join(folder, 'init.sql'),
    "CREATE DATABASE IF NOT EXISTS grants CHARACTER SET utf8mb4;\nCREATE USER IF NOT EXISTS app@'%' IDENTIFIED BY 'app';\nGRANT ALL ON *.* TO app@'%' WITH GRANT OPTION;\n",
  );
  const launch = (): Promise<ChildProcess> =>
    startService({
      file: executable ?? 'mariadbd',
      args: [...defaults, ...settings],
      options: { ...owner, cwd: folder },
      ready: /ready for connections/,
    });
  let child = await launch();
  return {
    uri: `mysql://app:app@127.0.0.1:${port}/grants`,
    port,
    get pid() {
      return child.pid ?? 0;
    },
    stop: async () => {
      await endService(child, 'SIGKILL');
      await rm(folder, { recursive: true, force: true });
    },
    kill: () => endService(child, 'SIGKILL'),
    restart: async () => {
      await endService(child, 'SIGTERM');
      child = await launch();
    },
  };
}
