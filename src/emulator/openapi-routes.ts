import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { EmulatorRoute } from './api.js';
import { EmulatorError, isRecord } from './checks.js';

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
  const base = serverPath(server);
  const routes = Object.entries(isRecord(document.paths) ? document.paths : {}).flatMap(([path, item]) => {
    const full = `${base}${path}`;
    const below = apiPath !== '' && full.startsWith(`${apiPath}/`) ? full.slice(apiPath.length) : path;
    return operationsOf(document, item).map(([method, operation]): EmulatorRoute => {
      let response: unknown;
      const handler = () => {
        response ??= responseOf(document, operation);
        return response;
      };
      return { method: method.toUpperCase(), path: below, handler };
    });
  });
  // A concrete path takes precedence over one with parameters.
  const parameters = ({ path }: EmulatorRoute) => path.split('{').length;
  return routes.sort((one, other) => parameters(one) - parameters(other));
}

/** Returns the path of a server's URL, without a trailing slash. Variables of the template have their defaults. */
function serverPath(server: unknown): string {
  if (!isRecord(server) || typeof server.url !== 'string') return '';
  const variables = isRecord(server.variables) ? server.variables : {};
  const url = server.url.replaceAll(/\{([^}]*)\}/g, (_whole, name: string) => {
    const variable = Object.hasOwn(variables, name) ? variables[name] : undefined;
    return isRecord(variable) && variable.default !== undefined ? String(variable.default) : name;
  });
  const [path = ''] = url.replace(/^(?:[a-z][a-z\d+.-]*:)?\/\/[^/?#]*/i, '').split(/[?#]/);
  const bare = path.replace(/^\/+|\/+$/g, '');
  return bare === '' ? '' : `/${bare}`;
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
  const anyType = isText ? 'text/plain; charset=utf-8' : 'application/json';
  const headers = { 'content-type': type.includes('*') ? anyType : type };
  return { status: number, headers, body: isText ? example : JSON.stringify(example) };
}

function unusable(file: string, reason: string): EmulatorError {
  return new EmulatorError(`routes: the OpenAPI file ${file} cannot be used: ${reason}.`, {
    code: 'ERR_EMULATOR_OPTION',
    option: 'routes',
  });
}

type Fields = Readonly<Record<string, unknown>>;

// Deeper values are left out.
const maxDepth = 8;

// Further values of an example are left out: a few schemas that contain each other describe millions.
const maxValues = 10_000;

/** An example that is made of a schema. */
interface Making {
  readonly document: unknown;
  /** Schemas whose value is being made, and how often. */
  readonly open: Map<unknown, number>;
  /** How often a schema may be within itself, itself included. It is left out there. */
  readonly maxNesting: number;
  depth: number;
  valuesLeft: number;
}

/** Returns the value that a local reference (`#/components/…`) stands for, or the value itself if it is not a reference. */
export function resolveReference(document: unknown, value: unknown): unknown {
  let resolved = value;
  for (let depth = 0; depth < maxDepth && isRecord(resolved) && typeof resolved.$ref === 'string'; depth += 1) {
    const path = resolved.$ref.replace(/^#\/?/, '').split('/').filter(Boolean);
    resolved = path.reduce<unknown>((parent, key) => {
      const name = decodeURIComponent(key).replaceAll('~1', '/').replaceAll('~0', '~');
      return isRecord(parent) && Object.hasOwn(parent, name) ? parent[name] : undefined;
    }, document);
  }
  return resolved;
}

/** Returns the example of a media type: its own, the first of its `examples`, or one that its schema describes. */
export function exampleOf(document: unknown, media: Fields): unknown {
  if (media.example !== undefined) return media.example;
  for (const named of Object.values(isRecord(media.examples) ? media.examples : {})) {
    const example = resolveReference(document, named);
    if (isRecord(example) && example.value !== undefined) return example.value;
  }
  let example: unknown;
  // Where schemas contain themselves in many ways, an example that is small has more of them than one that is cut.
  for (const maxNesting of [3, 1]) {
    const making: Making = { document, open: new Map(), maxNesting, depth: 0, valuesLeft: maxValues };
    example = fromSchema(making, media.schema);
    if (making.valuesLeft > 0) break;
  }
  return example ?? null;
}

/** Returns a value that a JSON Schema allows, from its own examples where it has them; `undefined` if it is left out. */
function fromSchema(making: Making, given: unknown): unknown {
  const schema = resolveReference(making.document, given);
  if (!isRecord(schema)) return null;
  const { example, examples, default: usual, const: constant, enum: choices } = schema;
  for (const value of [example, Array.isArray(examples) ? examples[0] : undefined, constant, usual]) {
    if (value !== undefined) return value;
  }
  if (Array.isArray(choices)) return choices[0];
  const nesting = making.open.get(schema) ?? 0;
  if (nesting >= making.maxNesting || making.depth >= maxDepth || making.valuesLeft <= 0) return undefined;
  making.valuesLeft -= 1;
  making.depth += 1;
  making.open.set(schema, nesting + 1);
  const value = fromParts(making, schema);
  making.open.set(schema, nesting);
  making.depth -= 1;
  return value;
}

function fromParts(making: Making, schema: Fields): unknown {
  if (Array.isArray(schema.allOf)) {
    const parts = schema.allOf.map((part) => fromSchema(making, part));
    const own = isRecord(schema.properties) ? [objectFrom(making, schema)] : [];
    return Object.assign({}, ...[...parts, ...own].filter(isRecord));
  }
  const alternatives = schema.oneOf ?? schema.anyOf;
  if (!Array.isArray(alternatives)) return fromType(making, schema);
  for (const alternative of alternatives) {
    const value = fromSchema(making, alternative);
    if (value !== undefined) return value;
  }
  return undefined;
}

function fromType(making: Making, schema: Fields): unknown {
  const types = Array.isArray(schema.type) ? schema.type : [schema.type];
  const type = types.find((candidate) => candidate !== 'null');
  if (type === 'object' || isRecord(schema.properties)) return objectFrom(making, schema);
  if (type === 'array') {
    const least = typeof schema.minItems === 'number' ? schema.minItems : 1;
    const length = Math.min(Math.max(least, 1), 100);
    const items = Array.from({ length }, () => fromSchema(making, schema.items));
    return items.filter((item) => item !== undefined);
  }
  if (type === 'integer' || type === 'number') return typeof schema.minimum === 'number' ? schema.minimum : 1;
  if (type === 'boolean') return true;
  if (type !== 'string') return null;
  const text = formats[String(schema.format)] ?? 'text';
  return text.padEnd(Math.min(Number(schema.minLength ?? 0), 10_000), 'x');
}

function objectFrom(making: Making, { properties }: Fields): Fields {
  const entries = Object.entries(isRecord(properties) ? properties : {});
  return Object.fromEntries(
    entries.flatMap(([name, schema]): [string, unknown][] => {
      const value = fromSchema(making, schema);
      return value === undefined ? [] : [[name, value]];
    }),
  );
}

const formats: Readonly<Record<string, string>> = {
  date: '2026-01-31',
  'date-time': '2026-01-31T12:00:00Z',
  time: '12:00:00Z',
  email: 'ada@example.com',
  uri: 'https://example.com/',
  url: 'https://example.com/',
  uuid: '5f0c5b1e-6f0a-4a2b-9a55-0d4f0a3c9c11',
  hostname: 'example.com',
  ipv4: '192.0.2.1',
  ipv6: '2001:db8::1',
  byte: 'dGV4dA==',
};
