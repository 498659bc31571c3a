import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, chownSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import pg from 'pg';
import { freePort } from './free-port.mjs';

/** Debian and Ubuntu keep the server's programs out of PATH, in a folder for each version. */
const DEBIAN = '/usr/lib/postgresql';

/** Clock ticks of the kernel in a second: 100 on all machines that Node runs on. */
const TICKS = 100;

/**
 * Starts a PostgreSQL of our own on a free port of loopback, with its data in a folder that ends with it. Under root, it runs as the
 * user that its package has made: it refuses to run as root.
 *
 * @returns {Promise<{ url: string, cpuUs(): number, stop(): Promise<void> } | undefined>} `undefined` where none is installed;
 *   `cpuUs`: of all its processes that are alive
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
  const server = spawn(
    postgres,
    ['-D', data, '-p', String(port), ...[...settings, 'max_connections=400'].flatMap((one) => ['-c', one])],
    start,
  );
  const exited = once(server, 'exit');
  // It must not outlive us, however we end.
  const end = () => server.kill('SIGQUIT');
  process.once('exit', end);
  const url = `postgres://postgres@127.0.0.1:${port}/postgres`;
  await answering(url);
  return {
    url,
    cpuUs: () => cpuOf(server.pid),
    stop: async () => {
      process.off('exit', end);
      end();
      await exited;
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** The version that is installed, if one is. */
export function postgresVersion() {
  const postgres = programOf('postgres');
  if (postgres === undefined) return undefined;
  return /([\d.]+)/.exec(execFileSync(postgres, ['--version'], { encoding: 'utf8' }))?.[1];
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

async function answering(url) {
  for (let tries = 0; tries < 200; tries += 1) {
    const client = new pg.Client({ connectionString: url });
    client.on('error', () => {});
    try {
      await client.connect();
      return await client.end();
    } catch {
      await pause(50);
    }
  }
  throw new Error('PostgreSQL did not start');
}

/** The postmaster, and one process for each connection; what has ended counts as its parent's. */
function cpuOf(postmaster) {
  let ticks = 0;
  for (const name of readdirSync('/proc').filter((one) => /^\d+$/.test(one))) {
    try {
      const text = readFileSync(`/proc/${name}/stat`, 'utf8');
      // After the name in brackets: state, parent, …; the eleventh to the fourteenth are utime, stime, cutime and cstime.
      const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
      if (Number(name) !== postmaster && Number(fields[1]) !== postmaster) continue;
      ticks += [11, 12, 13, 14].reduce((sum, index) => sum + Number(fields[index]), 0);
    } catch {
      // It has ended meanwhile.
    }
  }
  return (ticks * 1e6) / TICKS;
}
