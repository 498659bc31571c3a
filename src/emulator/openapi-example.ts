import { isRecord } from './checks.js';

type Fields = Readonly<Record<string, unknown>>;

// Deeper values are left out: a schema may contain itself.
const maxDepth = 8;

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
  return fromSchema(document, media.schema, 0);
}

/** Returns a value that a JSON Schema allows, from its own examples where it has them. */
function fromSchema(document: unknown, given: unknown, depth: number): unknown {
  const schema = resolveReference(document, given);
  if (!isRecord(schema) || depth > maxDepth) return null;
  const { example, examples, default: usual, const: constant, enum: choices } = schema;
  for (const value of [example, Array.isArray(examples) ? examples[0] : undefined, constant, usual]) {
    if (value !== undefined) return value;
  }
  if (Array.isArray(choices)) return choices[0];
  if (Array.isArray(schema.allOf)) {
    const parts = schema.allOf.map((part) => fromSchema(document, part, depth + 1));
    const own = isRecord(schema.properties) ? [objectFrom(document, schema, depth)] : [];
    return Object.assign({}, ...[...parts, ...own].filter(isRecord));
  }
  const alternatives = schema.oneOf ?? schema.anyOf;
  if (Array.isArray(alternatives)) return fromSchema(document, alternatives[0], depth + 1);
  return fromType(document, schema, depth);
}

function fromType(document: unknown, schema: Fields, depth: number): unknown {
  const types = Array.isArray(schema.type) ? schema.type : [schema.type];
  const type = types.find((candidate) => candidate !== 'null');
  if (type === 'object' || isRecord(schema.properties)) return objectFrom(document, schema, depth);
  if (type === 'array') {
    const least = typeof schema.minItems === 'number' ? schema.minItems : 1;
    const length = depth >= maxDepth ? 0 : Math.min(Math.max(least, 1), 100);
    return Array.from({ length }, () => fromSchema(document, schema.items, depth + 1));
  }
  if (type === 'integer' || type === 'number') return typeof schema.minimum === 'number' ? schema.minimum : 1;
  if (type === 'boolean') return true;
  return type === 'string' ? textFrom(schema) : null;
}

function objectFrom(document: unknown, { properties }: Fields, depth: number): Fields {
  if (depth >= maxDepth) return {};
  return Object.fromEntries(
    Object.entries(isRecord(properties) ? properties : {}).map(([name, schema]) => [
      name,
      fromSchema(document, schema, depth + 1),
    ]),
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

function textFrom({ format, minLength }: Fields): string {
  const text = formats[String(format)] ?? 'text';
  return typeof minLength === 'number' && minLength > text.length
    ? text.padEnd(Math.min(minLength, 10_000), 'x')
    : text;
}
