import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { freePort } from './free-port.mjs';

/** A dev dependency of the package. */
const mysql = createRequire(import.meta.url)('mysql2/promise');

/**
 * Starts a MariaDB of our own on a free port of loopback, with its data in a folder that ends with it. Under root, it runs as the
 * user that its package has made.
 *
 * @returns {Promise<{ url: string, stop(): Promise<void> }>}
 */
export async function startMariadb() {
  const folder = mkdtempSync(join(tmpdir(), 'bench-mariadb-'));
  chmodSync(folder, 0o777);
  const data = join(folder, 'data');
  const user = process.getuid?.() === 0 ? ['--user=mysql'] : [];
  const install = ['--no-defaults', `--datadir=${data}`, '--skip-test-db', '--auth-root-authentication-method=normal'];
  execFileSync('mariadb-install-db', [...install, ...user], { stdio: 'ignore' });
  const init = join(folder, 'init.sql');
  writeFileSync(
    init,
    "CREATE DATABASE grants;\nCREATE USER app@'%' IDENTIFIED BY 'app';\nGRANT ALL ON *.* TO app@'%';\n",
  );
  const port = await freePort();
  const places = [`--socket=${join(folder, 'socket')}`, `--pid-file=${join(folder, 'pid')}`, `--init-file=${init}`];
  // As it is installed, save for the log of commits, which would measure the disk.
  const settings = ['--innodb-flush-log-at-trx-commit=2', '--bind-address=127.0.0.1', `--port=${port}`];
  const args = ['--no-defaults', `--datadir=${data}`, ...user, ...places, ...settings];
  const server = spawn('/usr/sbin/mariadbd', args, { stdio: 'ignore' });
  const exited = once(server, 'exit');
  // It must not outlive us, however we end.
  const end = () => server.kill('SIGKILL');
  process.once('exit', end);
  const url = `mysql://app:app@127.0.0.1:${port}/grants`;
  await answering(url);
  return {
    url,
    stop: async () => {
      process.off('exit', end);
      end();
      await exited;
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

async function answering(url) {
  for (let tries = 0; tries < 200; tries += 1) {
    try {
      const connection = await mysql.createConnection(url);
      return await connection.end();
    } catch {
      await pause(100);
    }
  }
  throw new Error('MariaDB did not start');
}
