import { existsSync, readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { EmulatorError, isRecord } from './checks.js';
import { sampleApplication } from './directory.js';

const known = {
  port: { type: 'string' },
  host: { type: 'string' },
  'allow-remote': { type: 'boolean' },
  'domain-hosts': { type: 'string' },
  profile: { type: 'string' },
  'client-id': { type: 'string' },
  'client-secret': { type: 'string' },
  'redirect-url': { type: 'string', multiple: true },
  tenant: { type: 'string', multiple: true },
  'token-lifetime': { type: 'string' },
  'refresh-token-reuse': { type: 'string' },
  concurrency: { type: 'string' },
  latency: { type: 'string' },
  routes: { type: 'string' },
  'body-limit': { type: 'string' },
  seed: { type: 'string' },
  state: { type: 'string' },
  config: { type: 'string' },
  quiet: { type: 'boolean' },
  version: { type: 'boolean', short: 'v' },
  help: { type: 'boolean', short: 'h' },
} as const;

/** The command may run for days, so it keeps fewer requests than a test does. */
const commandDefaults = { port: 4000, keepRequests: 1000, keepBodyBytes: 16 * 1024 * 1024 };

/** Maps options to their flags, where one sets an option or a part of it. */
const flagOfOption: Readonly<Record<string, keyof typeof known>> = {
  port: 'port',
  host: 'host',
  domainHosts: 'domain-hosts',
  profile: 'profile',
  'applications[0].clientID': 'client-id',
  'applications[0].clientSecret': 'client-secret',
  'applications[0].redirectUrls': 'redirect-url',
  tenants: 'tenant',
  accessTokenLifetime: 'token-lifetime',
  refreshTokenReuse: 'refresh-token-reuse',
  concurrency: 'concurrency',
  latency: 'latency',
  routes: 'routes',
  bodyLimit: 'body-limit',
  seed: 'seed',
  state: 'state',
};

/** The options on the command line as text, unchecked. */
export type Flags = ReturnType<typeof parseArgs<{ options: typeof known }>>['values'];

/** A parsed command line, or the reason why it is wrong. */
export type Arguments = { readonly flags: Flags; readonly words: readonly string[] } | { readonly error: string };

/** Parses the command line. @param args - The words after the command's name. */
export function readArguments(args: readonly string[]): Arguments {
  try {
    const { values, positionals } = parseArgs({ args: [...args], options: known, allowPositionals: true });
    return { flags: values, words: positionals };
  } catch (error) {
    // Node's first sentence names the option; the rest is about file names that begin with a dash.
    return { error: error instanceof Error ? (error.message.split(/(?<=')\. |\n/, 1)[0] ?? '') : String(error) };
  }
}

/**
 * Returns the options of the emulator. The command line takes precedence over the config file, which takes precedence over the defaults.
 *
 * @throws {EmulatorError} `ERR_EMULATOR_OPTION` if the config file cannot be used. `startEmulator` checks the options themselves.
 */
export async function optionsOf(flags: Flags): Promise<Readonly<Record<string, unknown>>> {
  const config = flags.config === undefined ? {} : await readConfig(flags.config);
  // 50-200 is a range.
  const [, min, max] = /^(\d+)-(\d+)$/.exec(flags.latency ?? '') ?? [];
  const flagged = {
    port: numeric(flags.port),
    host: flags.host,
    allowRemote: flags['allow-remote'],
    domainHosts: flags['domain-hosts'],
    profile: flags.profile,
    tenants: flags.tenant,
    accessTokenLifetime: numeric(flags['token-lifetime']),
    refreshTokenReuse: flags['refresh-token-reuse'],
    concurrency: numeric(flags.concurrency),
    latency: min === undefined ? numeric(flags.latency) : [Number(min), Number(max)],
    routes: flags.routes,
    bodyLimit: numeric(flags['body-limit']),
    seed: flags.seed,
    state: flags.state,
    applications: withFlags(config.applications, flags),
  };
  const given = Object.entries(flagged).filter(([, value]) => value !== undefined);
  return { ...commandDefaults, ...config, ...Object.fromEntries(given) };
}

/** Replaces the name of an option at the start of a message by the flag that set it. */
export function withFlagNames({ message, option = '' }: EmulatorError, flags: Flags): string {
  const path = Object.keys(flagOfOption).find((name) => option === name || option.startsWith(`${name}[`));
  const flag = path === undefined ? undefined : flagOfOption[path];
  if (flag === undefined || !Object.hasOwn(flags, flag)) return message;
  const named = message.startsWith(option) ? `--${flag}${message.slice(option.length)}` : message;
  return named.replace('allowRemote: true', '--allow-remote');
}

/** Returns the version of this package: that of the first package.json above this file. */
export function packageVersion(): string {
  for (let folder = import.meta.dirname; ; folder = dirname(folder)) {
    const file = join(folder, 'package.json');
    if (existsSync(file)) {
      const { version }: { readonly version?: string } = JSON.parse(readFileSync(file, 'utf8'));
      if (version !== undefined) return version;
    }
    if (dirname(folder) === folder) return 'unknown';
  }
}

// Any other text is left as it is: the check of the options refuses it.
function numeric(text: string | undefined): number | string | undefined {
  return text !== undefined && /^\d+$/.test(text) ? Number(text) : text;
}

function withFlags(configured: unknown, flags: Flags): unknown {
  const given = {
    clientID: flags['client-id'],
    clientSecret: flags['client-secret'],
    redirectUrls: flags['redirect-url'],
  };
  const flagged = Object.entries(given).filter(([, value]) => value !== undefined);
  if (flagged.length === 0) return configured;
  const [first = sampleApplication, ...others] = Array.isArray(configured) ? configured : [];
  return isRecord(first) ? [{ ...first, ...Object.fromEntries(flagged) }, ...others] : configured;
}

async function readConfig(file: string): Promise<Readonly<Record<string, unknown>>> {
  const config = /\.m?js$/.test(file) ? await importConfig(file) : parseConfig(file, await readText(file));
  if (isRecord(config)) return config;
  throw unusable(file, 'it does not hold an object of options');
}

async function readText(file: string): Promise<string> {
  try {
    return await readFile(file, 'utf8');
  } catch (cause) {
    throw unusable(file, cause instanceof Error ? cause.message : 'it cannot be read');
  }
}

// The message of JSON.parse would quote the file, which may hold a secret.
function parseConfig(file: string, text: string): unknown {
  try {
    // Editors on Windows write a byte order mark, which JSON does not allow.
    return JSON.parse(text.replace(/^\ufeff/, ''));
  } catch {
    throw unusable(file, 'it is not valid JSON');
  }
}

async function importConfig(file: string): Promise<unknown> {
  try {
    const module: { readonly default?: unknown } = await import(pathToFileURL(resolve(file)).href);
    return module.default;
  } catch (cause) {
    throw unusable(file, cause instanceof Error ? cause.message : 'it cannot be imported');
  }
}

function unusable(file: string, reason: string): EmulatorError {
  return new EmulatorError(`The config file ${file} cannot be used: ${reason}.`, {
    code: 'ERR_EMULATOR_OPTION',
    option: 'config',
  });
}
