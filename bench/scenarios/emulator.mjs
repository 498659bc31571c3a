import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { Agent, request } from 'node:http';
import { createInterface } from 'node:readline';

/** An hour of ten uploads a second, played as fast as the machine can. */
const UPLOADS = 36_000;
const UPLOAD_BYTES = 1_000_000;
const CONCURRENCY = 4;

/** Uploads to the emulator's command: its memory must stay flat. */
export async function emulator({ share }) {
  const uploads = Math.round(UPLOADS * share * (share < 1 ? 0.1 : 1));
  const { bin } = JSON.parse(readFileSync('package.json', 'utf8'));
  const args = [bin['passport-oauth-app'], 'emulator', '--port', '0', '--quiet'];
  const child = spawn(process.execPath, args, {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { ...process.env, NODE_ENV: 'test' },
  });
  try {
    const origin = await addressOf(child);
    const statuses = {};
    let left = uploads;
    const agent = new Agent({ keepAlive: true, maxSockets: CONCURRENCY });
    const work = async () => {
      while (left > 0) {
        left -= 1;
        const status = await upload(`${origin}/api/v2/storages`, agent);
        statuses[status] = (statuses[status] ?? 0) + 1;
      }
    };
    await Promise.all(Array.from({ length: CONCURRENCY }, work));
    agent.destroy();
    return { title: 'Uploads of 1 MB to the emulator', uploads, statuses, peakBytes: peakOf(child.pid) };
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

const content = Buffer.alloc(UPLOAD_BYTES, 0xff);

function upload(url, agent) {
  return new Promise((resolve, reject) => {
    const headers = { 'content-type': 'application/octet-stream', 'content-length': UPLOAD_BYTES };
    const sent = request(url, { method: 'POST', headers, agent }, (response) => {
      response.resume().on('end', () => resolve(response.statusCode));
    });
    sent.on('error', reject).end(content);
  });
}

/** The most memory that a process has ever had; only Linux tells. */
function peakOf(pid) {
  const [, kilobytes] = /VmHWM:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
  return Number(kilobytes) * 1024;
}
