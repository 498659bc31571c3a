import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type DataServer, startDataServer } from './data-server.js';
import type { PostgresServer } from './postgres-server.js';
import { findExecutable, isInstalled } from './service-process.js';

/** A PgBouncer of the tests' own. */
export interface PgbouncerServer extends DataServer {
  readonly connectionString: string;
}

/** Debian keeps the server out of PATH. */
const executable = findExecutable('pgbouncer', ['/usr/sbin']);

/** Whether PgBouncer is installed; see {@link isInstalled}. For `describe.skipIf(!hasPgbouncer())`. */
export const hasPgbouncer = (): boolean => isInstalled('pgbouncer', executable);

/** Starts PgBouncer in front of a PostgreSQL: in transaction mode, with three connections for all clients. */
export async function startPgbouncer(postgres: Pick<PostgresServer, 'port'>): Promise<PgbouncerServer> {
  const server = await startDataServer({
    name: 'pgbouncer',
    user: 'postgres',
    command: (folder, port, owner) => {
      const file = join(folder, 'pgbouncer.ini');
      const settings = ['listen_addr = 127.0.0.1', `listen_port = ${port}`, 'unix_socket_dir =', 'auth_type = any'];
      const pools = ['pool_mode = transaction', 'default_pool_size = 3', 'max_client_conn = 500'];
      const database = `postgres = host=127.0.0.1 port=${postgres.port} user=postgres`;
      writeFileSync(file, ['[databases]', database, '[pgbouncer]', ...settings, ...pools, ''].join('\n'));
      return {
        file: executable ?? 'pgbouncer',
        args: [file],
        options: { ...owner, cwd: folder },
        ready: /process up: PgBouncer/i,
      };
    },
  });
  return Object.assign(server, { connectionString: `postgres://postgres@127.0.0.1:${server.port}/postgres` });
}
