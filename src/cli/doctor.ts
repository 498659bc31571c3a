import { existsSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { ConfigurationError } from '../errors.js';
import { DEFAULTS, resolveOptions } from '../options.js';
import { type Finding, ServiceProbe, type ServiceSettings } from './service-probe.js';

const usage = `Usage: passport-oauth-app doctor [options]

Checks the settings of a real service, without a login: addresses, metadata, the
format of token requests, the client secret, the clock and the callback URL.
Prints what to do, and the options to paste. Exits with 0 if a login can succeed.

Options, each with the environment variable that it replaces. Variables that are not set
are read from .env in this folder:
  --auth-url URL            AUTH_URL
  --base-url URL            BASE_URL
  --client-id ID            CLIENT_ID
  --client-secret SECRET    CLIENT_SECRET (others on this computer see arguments)
  --callback-url URL        CALLBACK_URL
  --authorization-path PATH authorization endpoint, below the auth URL or a whole URL
  --token-path PATH         token endpoint, likewise
  --help                    prints this text

The secret is sent to the token endpoint alone, and never printed.
`;

const flags = {
  'auth-url': { type: 'string' },
  'base-url': { type: 'string' },
  'client-id': { type: 'string' },
  'client-secret': { type: 'string' },
  'callback-url': { type: 'string' },
  'authorization-path': { type: 'string' },
  'token-path': { type: 'string' },
  help: { type: 'boolean', short: 'h' },
} as const;

/** Checks a service and prints what it found. Returns the exit code: 0 if a login can succeed, 1 if not, 2 for wrong usage. */
export async function doctor(args: readonly string[]): Promise<number> {
  let values: ReturnType<typeof parseArgs<{ options: typeof flags }>>['values'];
  try {
    ({ values } = parseArgs({ args: [...args], options: flags }));
  } catch {
    process.stderr.write(usage);
    return 2;
  }
  if (values.help) {
    process.stdout.write(usage);
    return 0;
  }
  let settings: ServiceSettings;
  try {
    settings = readSettings(values);
  } catch (error) {
    if (!(error instanceof ConfigurationError)) throw error;
    process.stderr.write(`${error.message}\n`);
    return 2;
  }
  const findings: Finding[] = [];
  const probe = new ServiceProbe(settings, (finding) => {
    findings.push(finding);
    process.stdout.write(`${finding.result.padEnd(5)} ${finding.check}: ${finding.text}\n`);
  });
  try {
    const options = await probe.run();
    process.stdout.write(optionsText(settings, options));
  } finally {
    await probe.close();
  }
  const failed = findings.filter(({ result }) => result === 'fail').length;
  process.stdout.write(failed === 0 ? '\nA login can succeed.\n' : `\nFix what failed (${failed}), then run again.\n`);
  return failed === 0 ? 0 : 1;
}

/** Reads the settings from flags, the environment and .env. @throws ConfigurationError that names all that are missing, or the first wrong one */
function readSettings(values: Readonly<Record<string, string | boolean | undefined>>): ServiceSettings {
  loadEnvironmentFile();
  const names = ['auth-url', 'base-url', 'client-id', 'client-secret', 'callback-url'] as const;
  const variableOf = (flag: string): string => flag.toUpperCase().replace('-', '_');
  const setting = (flag: string): string => String(values[flag] ?? process.env[variableOf(flag)] ?? '');
  const missing = names.filter((flag) => setting(flag) === '');
  if (missing.length > 0) {
    const list = missing.map((flag) => `${variableOf(flag)} (or --${flag})`).join(', ');
    throw new ConfigurationError(`Missing settings: ${list}`);
  }
  const paths = { authorizationPath: values['authorization-path'], tokenPath: values['token-path'] };
  // What the strategy would refuse is refused here in the same words.
  const { authUrl, baseUrl, clientID, clientSecret, callbackURL, authorizationPath, tokenPath } = resolveOptions({
    authUrl: setting('auth-url'),
    baseUrl: setting('base-url'),
    clientID: setting('client-id'),
    clientSecret: setting('client-secret'),
    callbackURL: setting('callback-url'),
    scope: [],
    ...paths,
  });
  if (!URL.canParse(callbackURL)) throw new ConfigurationError('CALLBACK_URL: expected an absolute http or https URL');
  return {
    ...{ authUrl, baseUrl, clientID, clientSecret: clientSecret[0], callbackURL: new URL(callbackURL) },
    authorizationPath: paths.authorizationPath === undefined ? undefined : authorizationPath,
    tokenPath: paths.tokenPath === undefined ? undefined : tokenPath,
  };
}

/** Reads .env as `node --env-file=.env` does. @throws ConfigurationError if it is there and cannot be read */
function loadEnvironmentFile(): void {
  if (!existsSync('.env')) return;
  try {
    process.loadEnvFile('.env');
  } catch {
    // Node reports a file without permission as missing.
    throw new ConfigurationError('.env: expected a file with lines NAME=value that this user may read');
  }
}

function optionsText(settings: ServiceSettings, options: Readonly<Record<string, unknown>>): string {
  const known = {
    authUrl: settings.authUrl,
    baseUrl: settings.baseUrl,
    ...Object.fromEntries(Object.entries(options).filter(([name, value]) => !isDefault(name, value))),
  };
  const lines = Object.entries(known).map(([name, value]) => {
    const literal = typeof value === 'string' ? `'${value.replace(/[\\']/g, '\\$&')}'` : String(value);
    return `  ${name}: ${literal},\n`;
  });
  return `\nnew Strategy({\n${lines.join('')}  clientID: process.env.CLIENT_ID,\n  clientSecret: process.env.CLIENT_SECRET,\n  callbackURL: process.env.CALLBACK_URL,\n  scope: [/* what your application needs */],\n})\n`;
}

function isDefault(name: string, value: unknown): boolean {
  return value === undefined || Reflect.get(DEFAULTS, name) === value;
}
