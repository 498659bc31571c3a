import { readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { endService, startService } from '../support/service-process.js';
import type { Place, RunningServer } from './authorization-server.js';

/** The version of a package in test/servers/node_modules; `undefined` if it is not installed. */
export function npmVersion(name: string): string | undefined {
  try {
    const file = new URL(`./node_modules/${name}/package.json`, import.meta.url);
    return String(JSON.parse(readFileSync(file, 'utf8')).version);
  } catch {
    return undefined;
  }
}

/**
 * Starts one of the programs in `node/`. What it knows is in its memory: it stops by closing its port and all its connections,
 * and goes on in the same process.
 */
export async function startNodeProgram(
  name: string,
  place: Place,
): Promise<Pick<RunningServer, 'stop' | 'restart' | 'close'>> {
  const child = await startService({
    file: process.execPath,
    args: [fileURLToPath(new URL(`./node/${name}.mjs`, import.meta.url)), JSON.stringify(place)],
    ready: /^listening$/,
  });
  const lines = createInterface({ input: child.stdout ?? process.stdin });
  const toggle = (expected: string): Promise<void> =>
    new Promise((resolve) => {
      const onLine = (line: string): void => {
        if (line !== expected) return;
        lines.off('line', onLine);
        resolve();
      };
      lines.on('line', onLine);
      child.kill('SIGUSR2');
    });
  return {
    stop: () => toggle('closed'),
    restart: () => toggle('listening'),
    close: () => endService(child, 'SIGKILL'),
  };
}
