import { relative } from 'node:path';
import { defineConfig, type PreRenderedChunk } from 'rolldown';
import { dts } from 'rolldown-plugin-dts';

/** Source of each entry point, by the name of its file in dist/. */
export const entryPoints: Readonly<Record<string, string>> = {
  index: 'src/index.ts',
  providers: 'src/providers/index.ts',
  redis: 'src/stores/redis-token-store.ts',
  postgres: 'src/stores/postgres-token-store.ts',
  mysql: 'src/stores/mysql-token-store.ts',
  sqlite: 'src/stores/sqlite-token-store.ts',
  conformance: 'src/stores/conformance/index.ts',
  emulator: 'src/emulator/index.ts',
  'emulator/vitest': 'src/emulator/vitest.ts',
  'emulator/playwright': 'src/emulator/playwright.ts',
  cli: 'src/emulator/cli.ts',
};

/** Packages stay imports, which Node resolves in the application's node_modules. Only src/ is bundled. */
const external = /^[^./]/;

/** Names a file of declarations after its entry point. The plugin knows its source file alone. */
function declarationFileName({ facadeModuleId }: PreRenderedChunk): string {
  const source = relative(import.meta.dirname, facadeModuleId ?? '').replace(/\.d\.ts$/, '.ts');
  return `${Object.keys(entryPoints).find((name) => entryPoints[name] === source)}.d.ts`;
}

// Each entry point is one file. What several of them use is a chunk that they share, so that `instanceof` works across
// entry points. Source maps hold the text of src/, which is not published.
export default defineConfig([
  {
    input: entryPoints,
    external,
    platform: 'node',
    output: {
      dir: 'dist',
      cleanDir: true,
      sourcemap: true,
      chunkFileNames: 'chunks/[name].js',
      // Hover texts come from the declarations. Code without comments, and one file of shared code, load faster.
      comments: { jsdoc: false },
      codeSplitting: { groups: [{ name: 'shared', test: /src.(?!emulator)/, minShareCount: 2 }] },
    },
  },
  {
    input: entryPoints,
    external,
    plugins: [dts({ oxc: true, emitDtsOnly: true, sourcemap: false })],
    output: {
      dir: 'dist',
      entryFileNames: (chunk) => (chunk.name.endsWith('.d') ? declarationFileName(chunk) : '[name].js'),
      chunkFileNames: 'chunks/[name].js',
    },
  },
]);
