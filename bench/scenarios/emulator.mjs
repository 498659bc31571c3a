import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';

/** An hour of ten uploads a second, played as fast as the machine can. */
const UPLOADS = 36_000;
const CONCURRENCY = 4;
const CONTENT = Buffer.alloc(1_000_000, 0xff);

/** Uploads to the emulator's command: its memory must stay flat. */
export async function emulator({ quick }) {
  const uploads = quick ? UPLOADS / 100 : UPLOADS;
  const { bin } = JSON.parse(readFileSync('package.json', 'utf8'));
  const args = [bin['passport-oauth-app'], 'emulator', '--port', '0', '--quiet'];
  const env = { ...process.env, NODE_ENV: 'test' };
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'], env });
  try {
    const url = `${await addressOf(child)}/api/v2/storages`;
    const statuses = {};
    let left = uploads;
    const work = async () => {
      while (left > 0) {
        left -= 1;
        const answer = await fetch(url, { method: 'POST', body: CONTENT });
        await answer.text();
        statuses[answer.status] = (statuses[answer.status] ?? 0) + 1;
      }
    };
    await Promise.all(Array.from({ length: CONCURRENCY }, work));
    // The most memory that a process has ever had; only Linux tells.
    const [, kilobytes] = /VmHWM:\s+(\d+) kB/.exec(readFileSync(`/proc/${child.pid}/status`, 'utf8')) ?? [];
    return { title: 'Uploads of 1 MB to the emulator', uploads, statuses, peakBytes: Number(kilobytes) * 1024 };
  } finally {
    child.kill('SIGTERM');
    await once(child, 'exit');
  }
}

async function addressOf(child) {
  for await (const line of createInterface({ input: child.stdout })) {
    const [, origin] = /listens on (\S+),/.exec(line) ?? [];
    if (origin !== undefined) return origin;
  }
  throw new Error('The emulator ended at its start.');
}
