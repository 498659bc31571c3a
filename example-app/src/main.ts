/**
 * The example application.
 *
 *   npm start              with an emulated service inside, nothing else needed
 *   npm start -- --tour    no browser: walks through everything by itself
 *
 * With these environment variables it runs against a real service instead: AUTH_URL, BASE_URL, CLIENT_ID, CLIENT_SECRET,
 * CALLBACK_URL, SCOPE (separated by spaces) and SESSION_SECRET; where it has enterprise organizations, ENTERPRISE_BASE_URL,
 * such as https://{domain}.api.example.com; where it takes a code challenge, PKCE=1. PORT is the port to listen on.
 */
import { readCommandLine, usage } from './command-line.js';
import { startExample } from './example.js';
import { untilAskedToEnd } from './server.js';
import { isExpected, realService, serverSettings } from './settings.js';
import { tour } from './tour/tour.js';

async function main(args: readonly string[]): Promise<number> {
  const command = readCommandLine(args);
  if (command.kind === 'help') return say(usage, 0);
  if (command.kind === 'mistake') return complain(`${command.mistake}\n${usage}`, 2);
  const service = realService(process.env);
  if (command.kind === 'run') return run(service);
  if (service) return complain('The tour walks through the emulated service: unset AUTH_URL and the others for it.', 2);
  return (await tour((line) => void say(line, 0))) ? 0 : 1;
}

async function run(service: ReturnType<typeof realService>): Promise<number> {
  const example = await startExample({ ...serverSettings(process.env), realService: service });
  const emulated =
    example.service && `\n  The emulated service listens on ${example.service.authUrl}. Ctrl-C ends both.`;
  const isAsked = untilAskedToEnd();
  say(`\n  Open ${example.url}\n${emulated ?? ''}`, 0);
  await isAsked;
  await example.close();
  return 0;
}

function say(text: string, exitCode: number): number {
  process.stdout.write(`${text}\n`);
  return exitCode;
}

function complain(text: string, exitCode: number): number {
  process.stderr.write(`${text}\n`);
  return exitCode;
}

main(process.argv.slice(2)).then(
  (exitCode) => {
    process.exitCode = exitCode;
  },
  (error: unknown) => {
    if (!isExpected(error)) throw error;
    process.exitCode = complain(error.message, 1);
  },
);
