import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { EmulatorRoute } from './api-routes.js';
import { EmulatorError, isRecord } from './checks.js';
import { exampleOf, resolveReference } from './openapi-example.js';

const methods = ['get', 'put', 'post', 'delete', 'options', 'patch', 'trace'];

/**
 * Reads the routes of an API from an OpenAPI 3 file: each operation answers with the example of its first success, or with one that its
 * schema describes.
 *
 * @param file - JSON, or YAML if the application has the package `yaml`.
 * @param apiPath - Path of the API. Paths of the file may include it, in their server URL or themselves.
 * @throws {EmulatorError} `ERR_EMULATOR_OPTION` if the file cannot be read, or is not an OpenAPI 3 document.
 */
export function openApiRoutes(file: string, apiPath: string): readonly EmulatorRoute[] {
  const document = parseDocument(file);
  const isOpenApi = isRecord(document) && String(document.openapi).startsWith('3.') && isRecord(document.paths);
  if (!isOpenApi) throw unusable(file, 'it is not an OpenAPI 3 document with paths');
  const [server] = Array.isArray(document.servers) ? document.servers : [];
  const base = isRecord(server) && typeof server.url === 'string' ? serverPath(server.url) : '';
  const routes = Object.entries(isRecord(document.paths) ? document.paths : {}).flatMap(([path, item]) => {
    const full = `${base}${path}`;
    const below = apiPath !== '' && full.startsWith(`${apiPath}/`) ? full.slice(apiPath.length) : path;
    return operationsOf(document, item).map(
      ([method, operation]): EmulatorRoute => ({
        method: method.toUpperCase(),
        path: below,
        handler: () => responseOf(document, operation),
      }),
    );
  });
  // A concrete path takes precedence over one with parameters.
  const parameters = ({ path }: EmulatorRoute) => path.split('{').length;
  return routes.sort((one, other) => parameters(one) - parameters(other));
}

function parseDocument(file: string): unknown {
  let text: string;
  try {
    text = readFileSync(file, 'utf8').replace(/^\ufeff/, '');
  } catch (cause) {
    throw unusable(file, cause instanceof Error ? cause.message : 'it cannot be read');
  }
  try {
    return /\.ya?ml$/i.test(file) ? yamlParser(file)(text) : JSON.parse(text);
  } catch (cause) {
    if (cause instanceof EmulatorError) throw cause;
    throw unusable(file, 'it is not valid JSON or YAML');
  }
}

/** Loads `yaml` from the application, which has it if its OpenAPI files are in YAML. */
function yamlParser(file: string): (text: string) => unknown {
  // No `import.meta`: Jest compiles this file to CommonJS.
  for (const from of [resolve(file), `${process.cwd()}/`]) {
    try {
      const { parse }: { readonly parse: (text: string) => unknown } = createRequire(pathToFileURL(from))('yaml');
      return parse;
    } catch {}
  }
  throw unusable(file, 'the package yaml is missing: run npm install --save-dev yaml, or convert the file to JSON');
}

function serverPath(url: string): string {
  const { pathname } = new URL(url.replaceAll(/[{}]/g, ''), 'http://localhost');
  return pathname.replace(/\/+$/, '');
}

function operationsOf(document: unknown, item: unknown): [string, Readonly<Record<string, unknown>>][] {
  const resolved = resolveReference(document, item);
  if (!isRecord(resolved)) return [];
  return methods.flatMap((method): [string, Readonly<Record<string, unknown>>][] => {
    const operation = resolved[method];
    return isRecord(operation) ? [[method, operation]] : [];
  });
}

/** Returns the first success (or `default`) of an operation as the result of a handler. */
function responseOf(document: unknown, { responses }: Readonly<Record<string, unknown>>): unknown {
  const entries = Object.entries(isRecord(responses) ? responses : {});
  const [status = '204', given] =
    entries.find(([code]) => /^2(\d\d|XX)$/i.test(code)) ?? entries.find(([code]) => code === 'default') ?? [];
  const response = resolveReference(document, given);
  const number = /^\d{3}$/.test(status) ? Number(status) : 200;
  const content = Object.entries(isRecord(response) && isRecord(response.content) ? response.content : {});
  const [type, media] = content.find(([name]) => /[/+]json\b/.test(name)) ?? content[0] ?? [];
  if (type === undefined || !isRecord(media)) return { status: number === 200 ? 204 : number };
  const example = exampleOf(document, media);
  const isText = typeof example === 'string' && !/[/+]json\b/.test(type);
  const headers = { 'content-type': type.includes('*') ? 'application/json' : type };
  return { status: number, headers, body: isText ? example : JSON.stringify(example) };
}

function unusable(file: string, reason: string): EmulatorError {
  return new EmulatorError(`routes: the OpenAPI file ${file} cannot be used: ${reason}.`, {
    code: 'ERR_EMULATOR_OPTION',
    option: 'routes',
  });
}
