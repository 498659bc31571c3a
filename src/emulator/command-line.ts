import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { sampleApplication } from './applications.js';
import { EmulatorError, isRecord } from './checks.js';

const known = {
  port: { type: 'string' },
  host: { type: 'string' },
  'client-id': { type: 'string' },
  'client-secret': { type: 'string' },
  'redirect-url': { type: 'string', multiple: true },
  'token-lifetime': { type: 'string' },
  'refresh-token-reuse': { type: 'string' },
  concurrency: { type: 'string' },
  seed: { type: 'string' },
  config: { type: 'string' },
  quiet: { type: 'boolean' },
  help: { type: 'boolean', short: 'h' },
} as const;

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
 * Returns the options of the emulator: those of the command line, before those of the config file, before the default port.
 *
 * @throws {EmulatorError} `ERR_EMULATOR_OPTION` if the config file cannot be used. `startEmulator` checks the options themselves.
 */
export async function optionsOf(flags: Flags): Promise<Readonly<Record<string, unknown>>> {
  const config = flags.config === undefined ? {} : await readConfig(flags.config);
  const flagged = {
    port: numeric(flags.port),
    host: flags.host,
    accessTokenLifetime: numeric(flags['token-lifetime']),
    refreshTokenReuse: flags['refresh-token-reuse'],
    concurrency: numeric(flags.concurrency),
    seed: flags.seed,
    applications: withFlags(config.applications, flags),
  };
  const given = Object.entries(flagged).filter(([, value]) => value !== undefined);
  return { port: 4000, ...config, ...Object.fromEntries(given) };
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
    return JSON.parse(text);
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
