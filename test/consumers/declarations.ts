import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

/** A declaration of a module of emitted declarations, where it stands. */
interface Named {
  readonly file: string;
  readonly name: string;
}

/** One module of emitted declarations: what it declares, what it imports, what it exports. */
interface Declarations {
  readonly declared: ReadonlyMap<string, string>;
  readonly imported: ReadonlyMap<string, Named>;
  readonly exported: ReadonlyMap<string, Named>;
  /** Additions to the global scope. */
  readonly global: readonly string[];
}

/** The public surface of an entry point. */
export interface Surface {
  /** Declarations by the names under which they are exported. */
  readonly exported: ReadonlyMap<string, string>;
  /** Declarations that these name without exporting them. */
  readonly named: ReadonlyMap<string, string>;
  readonly global: readonly string[];
}

/** Types of a constructor that is not for applications: what is behind them is no part of the surface. */
const INNER = new Set(['ApiContext', 'CredentialSource']);

/**
 * Reads the surface of an entry point out of the compiler's declarations, comments aside.
 *
 * The compiler's output is regular: a statement begins at the start of a line, and everything up to the next one is
 * its own.
 *
 * @param file A `.d.ts` file.
 */
export function surfaceOf(file: string): Surface {
  const modules = new Map<string, Declarations>();
  const load = (path: string) => {
    const known = modules.get(path) ?? parse(path, readFileSync(path, 'utf8'));
    modules.set(path, known);
    return known;
  };
  const find = ({ file: from, name }: Named): (Named & { readonly text: string }) | undefined => {
    const { declared, imported, exported } = load(from);
    const text = declared.get(name);
    if (text !== undefined) return { file: from, name, text };
    const next = imported.get(name) ?? exported.get(name);
    return next && find(next);
  };
  const { exported, global } = load(file);
  const own = new Map([...exported].map(([name, target]) => [name, find(target)]));
  const seen = new Map<string, string>();
  const queue = [...own.values()];
  for (let next = queue.shift(); next; next = queue.shift()) {
    const key = `${next.file} ${next.name}`;
    if (seen.has(key)) continue;
    seen.set(key, next.text);
    for (const word of new Set(next.text.match(/\b[A-Z]\w*/g) ?? [])) {
      const target = INNER.has(word) ? undefined : find({ file: next.file, name: word });
      if (target) queue.push(target);
    }
  }
  const texts = new Set([...own.values()].map((one) => one?.text));
  const named = [...seen].filter(([, text]) => !texts.has(text));
  return {
    exported: sorted([...own].map(([name, one]) => [name, one?.text ?? '?'])),
    named: sorted(named.map(([key, text]) => [key.split(' ')[1] ?? '', text])),
    global,
  };
}

function sorted(entries: readonly (readonly [string, string])[]): ReadonlyMap<string, string> {
  return new Map([...entries].sort(([one], [other]) => (one < other ? -1 : 1)));
}

function parse(file: string, source: string): Declarations {
  const declared = new Map<string, string>();
  const imported = new Map<string, Named>();
  const exported = new Map<string, Named>();
  const global: string[] = [];
  for (const statement of statements(source)) {
    const list = /^(import|export) (?:type )?\{([^}]*)\}(?: from '([^']+)')?/.exec(statement);
    const name = /^(?:export )?(?:declare )?(?:abstract )?(?:class|const|function|interface|type) (\w+)/.exec(
      statement,
    )?.[1];
    if (list) {
      const [, kind, names = '', from] = list;
      const target = from?.startsWith('.') ? join(dirname(file), from.replace(/\.js$/, '.d.ts')) : undefined;
      if (from !== undefined && target === undefined) continue;
      for (const { original, alias } of namesIn(names)) {
        const place = kind === 'import' ? imported : exported;
        place.set(alias, { file: target ?? file, name: original });
      }
    } else if (name !== undefined) {
      const text = tidy(statement);
      // Overloads of a function stand one below the other.
      declared.set(name, declared.has(name) ? `${declared.get(name)}\n${text}` : text);
      if (statement.startsWith('export ')) exported.set(name, { file, name });
    } else if (statement.startsWith('declare global')) global.push(tidy(statement));
    else if (!/^import |^export \{\};?$/.test(statement)) throw new Error(`${file}: not understood: ${statement}`);
  }
  return { declared, imported, exported, global };
}

function namesIn(list: string): readonly { readonly original: string; readonly alias: string }[] {
  return list
    .split(',')
    .map((one) => one.trim().replace(/^type /, ''))
    .filter((one) => one !== '')
    .map((one) => one.split(' as '))
    .map(([original = '', alias = original]) => ({ original, alias }));
}

function statements(source: string): readonly string[] {
  const found: string[] = [];
  const plain = source.replaceAll(/\/\*[\s\S]*?\*\//g, '').replaceAll(/^\/\/#.*$/gm, '');
  for (const line of plain.split('\n').filter((one) => one.trim() !== '')) {
    if (/^[a-z]/.test(line)) found.push(line);
    else found.push(`${found.pop() ?? ''}\n${line}`);
  }
  return found;
}

function tidy(statement: string): string {
  return statement
    .replace(/^(?:export )?(?:declare )?/, '')
    .replaceAll(/^ {4,}/gm, (indent) => ' '.repeat(indent.length / 2))
    .replaceAll(/^ *#private;\n/gm, '');
}
