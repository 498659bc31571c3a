import { chmod, chown, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
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

/** How a server is started and ended. */
export interface DataServerPlan {
  /** The name of its folder begins with it. */
  readonly name: string;
  /** The user under which it runs where the tests run as root, because it refuses to run as root. */
  readonly user?: string;
  /** Prepares the folder before the first start. */
  readonly prepare?: (folder: string, owner: Owner) => Promise<unknown>;
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
  await prepare?.(folder, owner);
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
