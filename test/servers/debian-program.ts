import { type ChildProcess, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { connect } from 'node:net';
import { fileURLToPath } from 'node:url';
import { vi } from 'vitest';
import { endService, type ServiceCommand, startService } from '../support/service-process.js';
import type { Place, RunningServer } from './authorization-server.js';

/** The version of the first of these packages of Debian; `undefined` if one of them is not installed. */
export function debianVersion(packages: readonly string[]): string | undefined {
  const versions = packages.map((name) => {
    const args = ['--show', `--showformat=$${'{db:Status-Abbrev}'} $${'{Version}'}`, name];
    const { stdout } = spawnSync('dpkg-query', args, { encoding: 'utf8' });
    return /^ii +(?:\d+:)?([\w.]+)/.exec(stdout ?? '')?.[1];
  });
  return versions.includes(undefined) ? undefined : versions[0];
}

/** Starts one of the programs in `debian/`. What it knows is in its folder: it stops by being killed, and is started again. */
export async function startDebianProgram(
  interpreter: string,
  file: string,
  place: Place & { readonly revokesAtOnce?: boolean },
  ready: RegExp,
): Promise<Pick<RunningServer, 'stop' | 'restart' | 'close'>> {
  const program = fileURLToPath(new URL(`./debian/${file}`, import.meta.url));
  return startProgram(place.port, {
    file: interpreter,
    args: [program, JSON.stringify(place)],
    options: { cwd: place.folder, env: { ...process.env, PYTHONUNBUFFERED: '1', PYTHONDONTWRITEBYTECODE: '1' } },
    ready,
  });
}

/** Starts a program that keeps what it knows on disk. It is ready when it has said so and its port accepts connections. */
export async function startProgram(
  port: number,
  command: ServiceCommand,
): Promise<Pick<RunningServer, 'stop' | 'restart' | 'close'>> {
  const launch = async (): Promise<ChildProcess> => {
    const started = await startService(command);
    await vi.waitFor(() => isOpen(port), { timeout: 110_000, interval: 20 });
    return started;
  };
  let child = await launch();
  return {
    stop: () => endService(child, 'SIGKILL'),
    restart: async () => {
      child = await launch();
    },
    close: () => endService(child, 'SIGKILL'),
  };
}

async function isOpen(port: number): Promise<void> {
  const socket = connect(port, '127.0.0.1');
  await once(socket, 'connect').finally(() => socket.destroy());
}
