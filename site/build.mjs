// Builds the site: the reference from the sources, then the pages. A dead link fails it. `npm run docs:build` runs it.
import { build } from 'vitepress';
import { writeReference } from './reference.mjs';

await writeReference();
await build(import.meta.dirname);
