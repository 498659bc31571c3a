// Builds the package into dist/: `npm run build`. The bundler's own command lists every file that it writes.
import { build } from 'rolldown';
import { loadConfig } from 'rolldown/config';

for (const options of [await loadConfig('rolldown.config.ts')].flat()) await build(options);
