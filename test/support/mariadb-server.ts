import { execFile } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { type DataServer, type Owner, startDataServer } from './data-server.js';
import { findExecutable, isInstalled } from './service-process.js';

/** A MariaDB of the tests' own, with one database named grants and one user named app. */
export interface MariadbServer extends DataServer {
  /** Takes the options of a pool in its query part. */
  readonly uri: string;
}

/** Debian keeps the server out of PATH. */
const executable = findExecutable('mariadbd', ['/usr/sbin']);
const installer = findExecutable('mariadb-install-db');

/** Whether MariaDB is installed; see {@link isInstalled}. For `describe.skipIf(!hasMariadb())`. */
export const hasMariadb = (): boolean => isInstalled('mariadbd', installer && executable);

/** Small, since each server gets a copy. */
const LOG_SIZE = '--innodb-log-file-size=8M';

/** Starts MariaDB on a free port, with its data in a folder of its own. Takes a few seconds. */
export async function startMariadb(): Promise<MariadbServer> {
  const server = await startDataServer({
    name: 'mariadb',
    user: 'mysql',
    prepare: { program: executable ?? 'mariadbd', run: install },
    command: (folder, port, owner) => ({
      file: executable ?? 'mariadbd',
      args: [
        '--no-defaults',
        `--datadir=${join(folder, 'data')}`,
        `--tmpdir=${folder}`,
        `--port=${port}`,
        '--bind-address=127.0.0.1',
        `--socket=${join(folder, 'socket')}`,
        `--pid-file=${join(folder, 'pid')}`,
        // Only a crash of the whole machine can lose data so; a killed server loses none.
        '--innodb-flush-log-at-trx-commit=2',
        '--innodb-buffer-pool-size=16M',
        LOG_SIZE,
        `--init-file=${join(folder, 'init.sql')}`,
      ],
      options: { ...owner, cwd: folder },
      ready: /ready for connections/,
    }),
  });
  return Object.assign(server, { uri: `mysql://app:app@127.0.0.1:${server.port}/grants` });
}

async function install(folder: string, owner: Owner): Promise<void> {
  // A server that starts deletes all temporary tables in its folder for them, those of another server too.
  const args = ['--no-defaults', `--datadir=${join(folder, 'data')}`, `--tmpdir=${folder}`, '--skip-test-db', LOG_SIZE];
  const command = [...args, '--auth-root-authentication-method=normal'];
  await promisify(execFile)(installer ?? 'mariadb-install-db', command, { ...owner, cwd: folder });
  await writeFile(
    join(folder, 'init.sql'),
    "CREATE DATABASE IF NOT EXISTS grants CHARACTER SET utf8mb4;\nCREATE USER IF NOT EXISTS app@'%' IDENTIFIED BY 'app';\nGRANT ALL ON *.* TO app@'%' WITH GRANT OPTION;\n",
  );
}
