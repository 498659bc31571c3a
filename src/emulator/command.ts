import { organizationOf } from './api.js';
import { sampleApplication } from './applications.js';
import { optionsOf, readArguments } from './command-line.js';
import { type Emulator, startFrom } from './emulator.js';
import { EmulatorError } from './emulator-error.js';
import type { LogEntry } from './options.js';

const usage = `Usage: passport-oauth-app emulator [options]

Runs an emulator of the OAuth application service on this computer, to develop and
test against. It keeps everything in memory; Ctrl-C ends it.

Options:
  --port NUMBER            port to listen on, 0 for a free one (4000)
  --host NAME              127.0.0.1, ::1 or localhost (127.0.0.1)
  --client-id ID           client ID of the application (${sampleApplication.clientID})
  --client-secret SECRET   its client secret (${sampleApplication.clientSecret})
  --redirect-url URL       a redirect URL of the application; may be repeated
                           (${sampleApplication.redirectUrls[0]})
  --token-lifetime SECONDS lifetime of access tokens (7200)
  --refresh-token-reuse HOW  what becomes of a used refresh token:
                           refuse, revoke or grace (refuse)
  --concurrency NUMBER     most API requests of one account at once (no limit)
  --seed TEXT              the same tokens at each start
  --config FILE            options of startEmulator() in a JSON file, or as the
                           default export of a .js or .mjs file; the options
                           above take precedence over it
  --quiet                  no line for each request
  --help                   this text
`;

/** What the command needs of its surroundings. */
export interface Terminal {
  readonly out: (text: string) => void;
  readonly err: (text: string) => void;
  /** Resolves when the person wants it to end. */
  readonly untilEnd: () => Promise<void>;
}

/**
 * Runs the command until it is asked to end.
 *
 * @param args - What stands after the command's name.
 * @returns The exit code: 0, 1 if it could not start, 2 if it was called wrongly.
 */
export async function run(args: readonly string[], terminal: Terminal): Promise<number> {
  const read = readArguments(args);
  if ('mistake' in read) return said(terminal.err, `${read.mistake}\nSee passport-oauth-app emulator --help.\n`, 2);
  const { flags, words } = read;
  if (flags.help) return said(terminal.out, usage, 0);
  if (words.length !== 1 || words[0] !== 'emulator') return said(terminal.err, usage, 2);
  try {
    const log = flags.quiet ? undefined : (entry: LogEntry) => terminal.out(logLine(entry));
    const service = await startFrom({ log, ...(await optionsOf(flags)) });
    terminal.out(banner(service));
    await terminal.untilEnd();
    await service.close();
    return said(terminal.out, 'The emulator has ended.\n', 0);
  } catch (error) {
    if (error instanceof EmulatorError) return said(terminal.err, `${error.message}\n`, 1);
    throw error;
  }
}

function said(say: (text: string) => void, text: string, exitCode: number): number {
  say(text);
  return exitCode;
}

function banner({ options, applications, users }: Emulator): string {
  const { redirectUrls = [] } = applications[0] ?? {};
  const settings = Object.entries({ ...options, callbackURL: redirectUrls[0] });
  const people = users.map(
    ({ id, name, domain }) => `  ${id}  ${name}${domain === undefined ? '' : `, organization ${domain}`}`,
  );
  return `The emulator listens on ${options.authUrl}, for this computer only.

Paste into your application:

new Strategy({
${settings.map(([name, value]) => `  ${name}: ${quoted(value ?? '')},`).join('\n')}
  scope: ['project'],
})

Or set, for an application that reads its environment:

${environment(options)}

Redirect URLs:
${redirectUrls.map((url) => `  ${url}`).join('\n')}
Users:
${people.join('\n')}

Ctrl-C ends it.
`;
}

function environment({ authUrl, baseUrl, enterpriseBaseUrl, clientID, clientSecret }: Emulator['options']): string {
  const variables = {
    AUTH_URL: authUrl,
    BASE_URL: baseUrl,
    ENTERPRISE_BASE_URL: enterpriseBaseUrl,
    CLIENT_ID: clientID,
    CLIENT_SECRET: clientSecret,
  };
  return Object.entries(variables)
    .map(([name, value]) => `export ${name}='${value.replaceAll("'", `'\\''`)}'`)
    .join('\n');
}

function quoted(text: string): string {
  return `'${text.replace(/[\\']/g, '\\$&')}'`;
}

// A path may hold anything; only what is visible and harmless in a terminal is printed.
function logLine({ method, host, path, outcome, durationMs }: LogEntry): string {
  const time = new Date().toTimeString().slice(0, 8);
  const place = organizationOf(host) === undefined ? path : `${host}${path}`;
  return `${time} ${method} ${place.replace(/[^\x21-\x7e]/g, '?')} ${outcome} ${Math.round(durationMs)} ms\n`;
}
