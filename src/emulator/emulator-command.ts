import { EmulatorError } from './checks.js';
import { optionsOf, packageVersion, readArguments, withFlagNames } from './command-line.js';
import { sampleApplication } from './directory.js';
import { type Emulator, type ServiceOptions, startEmulator } from './emulator.js';
import type { LogEntry } from './server.js';

const usage = `Usage: passport-oauth-app emulator [options]

Runs an emulator of the OAuth service on this computer, to develop and test against.
Open its address in a browser to watch and control it. Ctrl-C stops it.

Options:
  --port NUMBER            port to listen on, 0 for a free one (4000)
  --host NAME              127.0.0.1, ::1 or localhost (127.0.0.1); any address,
                           such as 0.0.0.0, with --allow-remote
  --allow-remote           serves other computers and containers too
  --domain-hosts HOW       where the API address has the organization: subdomain,
                           or path for clients that cannot resolve *.localhost
                           (subdomain)
  --profile NAME           speaks as another service: crowdin, form, basic, …
  --client-id ID           client ID of the application (${sampleApplication.clientID})
  --client-secret SECRET   its client secret (${sampleApplication.clientSecret})
  --redirect-url URL       a redirect URL of the application; may be repeated
                           (${sampleApplication.redirectUrls[0]})
  --tenant NAME            a customer with its own host, http://NAME.localhost,
                           and its own application; may be repeated
  --token-lifetime SECONDS lifetime of access tokens (7200)
  --refresh-token-reuse HOW  treatment of a used refresh token:
                           refuse, revoke, grace, until-used or
                           until-refreshed (that of the profile, or refuse)
  --concurrency NUMBER     most API requests of one account at once (no limit)
  --latency MS             delay of each request: 50, or 50-200 (none)
  --routes FILE            OpenAPI 3 file with further resources of the API
  --body-limit BYTES       most bytes of a request body (1048576)
  --seed TEXT              issues the same tokens at each start
  --state FILE             keeps users, grants and time across restarts in a file
  --config FILE            options of startEmulator() in a JSON file, or as the
                           default export of a .js or .mjs file; the options
                           above take precedence over it
  --quiet                  does not log requests
  --version                prints the version of this package
  --help                   prints this text
`;

/** Runs the command until Ctrl-C. Returns the exit code: 0, 1 if it could not start, 2 if the command line is wrong. */
export async function emulatorCommand(args: readonly string[]): Promise<number> {
  const commandLine = readArguments(args);
  if ('error' in commandLine) return fail(2, `${commandLine.error}\nSee passport-oauth-app emulator --help.\n`);
  const { flags, words } = commandLine;
  if (flags.help || flags.version) {
    process.stdout.write(flags.help ? usage : `${packageVersion()}\n`);
    return 0;
  }
  if (words.length !== 1 || words[0] !== 'emulator') return fail(2, usage);
  try {
    const log = flags.quiet ? undefined : (entry: LogEntry) => void process.stdout.write(logLine(entry));
    const options = await optionsOf(flags);
    const service = await startEmulator({ log, ...options });
    process.stdout.write(banner(service, options.allowRemote === true, flags.tenant ?? []));
    await new Promise<void>((resolve) => {
      for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => resolve());
    });
    await service.close();
    process.stdout.write('The emulator has stopped.\n');
    return 0;
  } catch (error) {
    if (error instanceof EmulatorError) return fail(1, `${withFlagNames(error, flags)}\n`);
    throw error;
  }
}

function fail(exitCode: number, message: string): number {
  process.stderr.write(message);
  return exitCode;
}

function banner(
  { options, optionsOf, applications, users }: Emulator,
  allowsRemote: boolean,
  tenants: readonly string[],
): string {
  const { redirectUrls = [] } = applications[0] ?? {};
  const settings = Object.entries({ ...options, callbackURL: redirectUrls[0] ?? '' }).map(([name, value]) => {
    const literal = typeof value === 'string' ? `'${value.replace(/[\\']/g, '\\$&')}'` : JSON.stringify(value);
    return `  ${name}: ${literal},`;
  });
  const accounts = users.map(
    ({ id, name, domain }) => `  ${id}  ${name}${domain === undefined ? '' : `, organization ${domain}`}`,
  );
  const customers = tenants
    .map((tenant) => optionsOf(tenant))
    .map(({ authUrl, clientID, clientSecret }) => `  ${authUrl}  ${clientID}  ${clientSecret}`)
    .join('\n');
  const clients = allowsRemote ? 'reachable from other computers' : 'reachable from this computer only';
  return `The emulator listens on ${options.authUrl}, ${clients}.
Open this address in a browser to see requests and to control the service.

Save as .env, and run your application with node --env-file=.env:

${environment(options)}

Or paste into your application:

new Strategy({
${settings.join('\n')}
  scope: ['project'],
})

Redirect URLs:
${redirectUrls.map((url) => `  ${url}`).join('\n')}
Users:
${accounts.join('\n')}
${customers === '' ? '' : `Tenants, with the client ID and secret of each:\n${customers}\n`}
Ctrl-C stops it.
`;
}

function environment({ authUrl, baseUrl, enterpriseBaseUrl, clientID, clientSecret }: ServiceOptions): string {
  const variables = {
    AUTH_URL: authUrl,
    BASE_URL: baseUrl,
    ENTERPRISE_BASE_URL: enterpriseBaseUrl,
    CLIENT_ID: clientID,
    CLIENT_SECRET: clientSecret,
  };
  return Object.entries(variables)
    .map(([name, value]) => `${name}=${quoted(value)}`)
    .join('\n');
}

/** Returns a value as Node's parser of .env files reads it. That knows three kinds of quotes, and no escapes. */
function quoted(value: string): string {
  if (/^[\w!$%&()*+,./:;<=>?@[\]^{|}~-]*$/.test(value)) return value;
  const quote = ["'", '"', '`'].find((one) => !value.includes(one)) ?? "'";
  return quote + value + quote;
}

// A path may hold any character. Only those that are visible and harmless in a terminal are printed.
function logLine({ method, host, path, outcome, durationMs }: LogEntry): string {
  const time = new Date().toTimeString().slice(0, 8);
  const target = /\.localhost(:\d+)?$/.test(host) ? `${host}${path}` : path;
  return `${time} ${method} ${target.replace(/[^\x21-\x7e]/g, '?')} ${outcome} ${Math.round(durationMs)} ms\n`;
}
