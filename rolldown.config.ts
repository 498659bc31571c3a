import { createRequire, SourceMap } from 'node:module';
import { relative } from 'node:path';
import { defineConfig, type Plugin, type PreRenderedChunk } from 'rolldown';
import { dts } from 'rolldown-plugin-dts';

/** Source of each entry point, by the name of its file in dist/. */
export const entryPoints: Readonly<Record<string, string>> = {
  index: 'src/index.ts',
  providers: 'src/providers/index.ts',
  redis: 'src/redis/redis-token-store.ts',
  postgres: 'src/postgres/postgres-token-store.ts',
  mysql: 'src/mysql/mysql-token-store.ts',
  sqlite: 'src/sqlite/sqlite-token-store.ts',
  'lease-lock': 'src/databases/lease-lock.ts',
  tenants: 'src/tenants/index.ts',
  conformance: 'src/conformance/index.ts',
  emulator: 'src/emulator/index.ts',
  'emulator/vitest': 'src/emulator/vitest.ts',
  'emulator/playwright': 'src/emulator/playwright.ts',
  cli: 'src/cli/cli.ts',
};

/** The build prints what is wrong with it alone: on a slow machine the bundler would advise on the time that plugins take. */
const checks = { bundlerTimings: false };

/** Packages stay imports, which Node resolves in the application's node_modules. Only src/ is bundled. */
const external = /^[^./\0]/;

/** Names a file of declarations after its entry point. The plugin passes only the source file. */
function declarationFileName({ facadeModuleId }: PreRenderedChunk): string {
  const source = relative(import.meta.dirname, facadeModuleId ?? '').replace(/\.d\.ts$/, '.ts');
  return `${Object.keys(entryPoints).find((name) => entryPoints[name] === source)}.d.ts`;
}

/** What the main chunk imports, by the name that the modules of src/ use. */
const REQUIRED = [
  'cookie',
  'node:crypto',
  'node:diagnostics_channel',
  'node:events',
  'node:http',
  'node:net',
  'node:stream',
  'node:stream/promises',
  'passport-oauth2',
];

/**
 * Makes the main chunk get its imports from one CommonJS file. Node would make an ES module of each `import`, and for its
 * exports load what `node:crypto` loads lazily: a tenth of the import time.
 */
function requireFromOneFile(): Plugin {
  const file = './required.cjs';
  const prefix = '\0required:';
  const require = createRequire(import.meta.url);
  return {
    name: 'require-from-one-file',
    resolveId(id) {
      if (id === file) return { id, external: true };
      return REQUIRED.includes(id) ? prefix + id : null;
    },
    load(id) {
      if (!id.startsWith(prefix)) return null;
      const specifier = id.slice(prefix.length);
      const names = Object.keys(require(specifier)).filter((name) => name !== 'default');
      const code = [
        `import required from '${file}';`,
        `export default required['${specifier}'];`,
        // Those that nothing imports are left out.
        ...names.map((name) => `export const ${name} = /* @__PURE__ */ (() => required['${specifier}'].${name})();`),
      ];
      return { code: code.join('\n'), moduleSideEffects: false };
    },
    generateBundle() {
      const entries = REQUIRED.map((specifier) => `\t'${specifier}': require('${specifier}'),\n`);
      const source = `module.exports = {\n${entries.join('')}};\n`;
      this.emitFile({ type: 'asset', fileName: 'chunks/required.cjs', source });
    },
  };
}

/** True for what runs in development alone: the emulator, the commands, and the checks for stores. */
function isTool(id: string): boolean {
  return /^src\/(?:emulator|cli|conformance)\//.test(relative(import.meta.dirname, id));
}

/** Leaves out the source maps of tools. Their lines stay: Node prints the one that threw an uncaught error. */
function toolsWithoutMaps(): Plugin {
  return {
    name: 'tools-without-maps',
    generateBundle(_options, bundle) {
      for (const chunk of Object.values(bundle)) {
        if (chunk.type === 'chunk' && chunk.moduleIds.some(isTool)) delete bundle[`${chunk.fileName}.map`];
      }
    },
  };
}

const BASE64 = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/';

/** Writes a number as source maps do: five bits a digit, the sign in the last bit of the first. */
function vlq(number: number): string {
  let digits = '';
  for (let left = number < 0 ? -2 * number + 1 : 2 * number; ; left >>= 5) {
    digits += BASE64[left > 31 ? (left & 31) + 32 : left];
    if (left <= 31) return digits;
  }
}

/** Makes source maps lead from line to line: a fifth of the size, and all that a stack trace of unminified code needs. */
function mapsOfLines(): Plugin {
  return {
    name: 'maps-of-lines',
    generateBundle(_options, bundle) {
      for (const chunk of Object.values(bundle)) {
        const asset = bundle[`${chunk.fileName}.map`];
        if (chunk.type !== 'chunk' || asset?.type !== 'asset') continue;
        const { file, version, sources, ...map } = JSON.parse(String(asset.source));
        const entries = new SourceMap({ file, version, sources, ...map });
        let [lastSource, lastLine] = [0, 0];
        const lines = chunk.code.split('\n').map((text, line) => {
          const entry = entries.findEntry(line, text.search(/\S/));
          if (!('originalSource' in entry) || entry.generatedLine !== line) return '';
          const source = sources.indexOf(entry.originalSource);
          const mapping = `A${vlq(source - lastSource)}${vlq(entry.originalLine - lastLine)}A`;
          [lastSource, lastLine] = [source, entry.originalLine];
          return mapping;
        });
        asset.source = JSON.stringify({ version, file, sources, names: [], mappings: lines.join(';') });
      }
    },
  };
}

const files = { dir: 'dist', chunkFileNames: 'chunks/[name].js' } as const;

// Hover texts come from the declarations. Code without comments loads faster, and so does ASCII, which V8 holds in half the
// memory. Names and lines stay, for stack traces.
const code = {
  ...files,
  comments: { jsdoc: false },
  minify: { compress: false, mangle: false, codegen: { removeWhitespace: false, asciiOnly: true } },
} as const;

// The main entry point is one chunk, from which the other ones take what they share with it, so that `instanceof` works across
// entry points. Its source maps lead a stack trace to a file and line of src/, which is not published.
export default defineConfig([
  {
    input: entryPoints,
    external: (id, importer = '') => external.test(id) && (isTool(importer) || !REQUIRED.includes(id)),
    checks,
    platform: 'node',
    plugins: [requireFromOneFile(), toolsWithoutMaps(), mapsOfLines()],
    output: {
      ...code,
      cleanDir: true,
      sourcemap: true,
      sourcemapExcludeSources: true,
      codeSplitting: {
        groups: [
          { name: 'main', test: /src.index\.ts$/ },
          { name: 'jobs', test: /src.jobs/ },
        ],
      },
    },
  },
  {
    input: entryPoints,
    external,
    checks,
    plugins: [dts({ oxc: true, emitDtsOnly: true, sourcemap: false })],
    output: {
      ...files,
      entryFileNames: (chunk) => (chunk.name.endsWith('.d') ? declarationFileName(chunk) : '[name].js'),
    },
  },
]);
