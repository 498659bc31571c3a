import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { sampleApplication } from './applications.js';
import { isRecord } from './checks.js';
import { EmulatorError } from './emulator-error.js';

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

/** What was given on the command line: options as text, none of them checked. */
export type Flags = ReturnType<typeof parseArgs<{ options: typeof known }>>['values'];

/** The command line, or what is wrong with it. */
export type Arguments = { readonly flags: Flags; readonly words: readonly string[] } | { readonly mistake: string };

/** @param args - What stands after the command's name. */
export function readArguments(args: readonly string[]): Arguments {
  try {
    const { values, positionals } = parseArgs({ args: [...args], options: known, allowPositionals: true });
    return { flags: values, words: positionals };
  } catch (error) {
    // Node's first sentence names the option; the rest is about file names that begin with a dash.
    return { mistake: error instanceof Error ? (error.message.split(/(?<=')\. |\n/, 1)[0] ?? '') : String(error) };
  }
}

/**
 * The options for the emulator: those of the config file, over them those of the command line, below them the usual port.
 *
 * @throws {EmulatorError} `ERR_EMULATOR_OPTION` if the config file cannot be used. The options themselves are not checked here.
 */
export async function optionsOf(flags: Flags): Promise<Readonly<Record<string, unknown>>> {
  const config = flags.config === undefined ? {} : await readConfig(flags.config);
  const told = {
    port: numeric(flags.port),
    host: flags.host,
    accessTokenLifetime: numeric(flags['token-lifetime']),
    refreshTokenReuse: flags['refresh-token-reuse'],
    concurrency: numeric(flags.concurrency),
    seed: flags.seed,
    applications: withFlags(config.applications, flags),
  };
  const given = Object.entries(told).filter(([, value]) => value !== undefined);
  return { port: 4000, ...config, ...Object.fromEntries(given) };
}

// A number that is none is left as it is, for the check of the options to refuse it.
function numeric(text: string | undefined): number | string | undefined {
  return text !== undefined && /^\d+$/.test(text) ? Number(text) : text;
}

function withFlags(configured: unknown, flags: Flags): unknown {
  const given = {
    clientID: flags['client-id'],
    clientSecret: flags['client-secret'],
    redirectUrls: flags['redirect-url'],
  };
  const told = Object.entries(given).filter(([, value]) => value !== undefined);
  if (told.length === 0) return configured;
  const [first = sampleApplication, ...others] = Array.isArray(configured) ? configured : [];
  return isRecord(first) ? [{ ...first, ...Object.fromEntries(told) }, ...others] : configured;
}

async function readConfig(file: string): Promise<Readonly<Record<string, unknown>>> {
  const config = /\.m?js$/.test(file) ? await importConfig(file) : parseConfig(file, await readText(file));
  if (isRecord(config)) return config;
  throw unusable(file, 'it holds no object of options');
}

async function readText(file: string): Promise<string> {
  try {
    return await readFile(file, 'utf8');
  } catch (cause) {
    throw unusable(file, cause instanceof Error ? cause.message : 'it cannot be read');
  }
}

// The parser's own message would quote the file, which may hold a secret.
function parseConfig(file: string, text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw unusable(file, 'it is not well-formed JSON');
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
