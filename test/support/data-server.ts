import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { chmod, chown, mkdir, mkdtemp, rename, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { endService, freePort, type ServiceCommand, startService, userIds } from './service-process.js';

/** A server of the tests' own, with its data in a folder of its own. */
export interface DataServer {
  readonly port: number;
  /** Of the process that runs now; a restart changes it. For SIGSTOP and SIGCONT. */
  readonly pid: number;
  /** Ends it for good and removes its data. May be called at any time, and more than once. */
  stop(): Promise<void>;
  /** Ends it at once, every connection cut; the data stays, every write that was answered included. */
  kill(): Promise<void>;
  /** Ends it if it runs, and starts it on the same port with the same data. */
  restart(): Promise<void>;
}

/** The ids of the user under which a server runs; empty if that is the user of the tests. */
export type Owner = ReturnType<typeof userIds>;

/** Fills a folder, which takes seconds: once for each version of the program, then the folder is copied. */
export interface Preparation {
  readonly program: string;
  readonly run: (folder: string, owner: Owner) => Promise<unknown>;
}

/** How a server is started and ended. */
export interface DataServerPlan {
  /** The name of its folder begins with it. */
  readonly name: string;
  /** The user under which it runs where the tests run as root, because it refuses to run as root. */
  readonly user?: string;
  /** How the folder is filled before the first start. */
  readonly prepare?: Preparation;
  readonly command: (folder: string, port: number, owner: Owner) => ServiceCommand;
  /** Ends it at once. Default: SIGKILL. */
  readonly killSignal?: NodeJS.Signals;
  /** Ends it in good order. Default: SIGTERM. */
  readonly endSignal?: NodeJS.Signals;
}

/** Starts a server on a free port. Resolves when it says that it is ready. */
export async function startDataServer(plan: DataServerPlan): Promise<DataServer> {
  const { name, user, prepare, command, killSignal = 'SIGKILL', endSignal = 'SIGTERM' } = plan;
  const folder = await mkdtemp(join(tmpdir(), `${name}-`));
  const owner = user === undefined ? {} : userIds(user);
  if (owner.uid !== undefined) await chown(folder, owner.uid, owner.gid);
  await chmod(folder, 0o700);
  const port = await freePort();
  if (prepare) await fill(folder, prepare, owner);
  const launch = () => startService(command(folder, port, owner));
  let child = await launch();
  return {
    port,
    get pid() {
      return child.pid ?? 0;
    },
    stop: async () => {
      await endService(child, killSignal);
      await rm(folder, { recursive: true, force: true });
    },
    kill: () => endService(child, killSignal),
    restart: async () => {
      await endService(child, endSignal);
      child = await launch();
    },
  };
}

/** Folders that were filled, to be copied by later starts and runs. `npm ci` removes them. */
const TEMPLATES = fileURLToPath(new URL('../../node_modules/.cache/data-servers/', import.meta.url));

async function fill(folder: string, { program, run }: Preparation, owner: Owner): Promise<void> {
  const { mtimeMs, size } = await stat(program);
  const template = join(TEMPLATES, `${basename(program)}-${mtimeMs}-${size}-${owner.uid ?? 'own'}`);
  const copy = (from: string, to: string) => promisify(execFile)('cp', ['-pR', `${from}/.`, to]);
  if (existsSync(template)) return void (await copy(template, folder));
  await run(folder, owner);
  await mkdir(TEMPLATES, { recursive: true });
  const another = await mkdtemp(`${template}-`);
  await copy(folder, another);
  // Another process may have been faster: its folder is as good.
  await rename(another, template).catch(() => rm(another, { recursive: true }));
}
