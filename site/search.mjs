// Looks in the index of the built site for what a visitor with the problem would type.
import { readdirSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { boostDocument } from './.vitepress/config.mjs';

const { default: MiniSearch } = await import(
  pathToFileURL(createRequire(createRequire(import.meta.url).resolve('vitepress/package.json')).resolve('minisearch'))
);

/** The symptoms in README.md. */
const SYMPTOMS = [
  'invalid_grant when two requests refresh at once',
  'users are logged out at random',
  'logged out after a deployment',
  'API calls get 401 after an hour',
];

/** Throws unless the search finds the page about lost logins for each symptom, among its first three results. */
export async function checkSearch(dist) {
  const chunks = join(dist, 'assets/chunks');
  const file = readdirSync(chunks).find((name) => name.startsWith('@localSearchIndexroot'));
  const { default: index } = await import(pathToFileURL(join(chunks, file)));
  // As the theme's search box does.
  const fields = ['title', 'titles', 'text'];
  const search = MiniSearch.loadJSON(index, { fields, storeFields: ['title', 'titles'] });
  const options = { fuzzy: 0.2, prefix: true, boost: { title: 4, text: 2, titles: 1 }, boostDocument };
  for (const symptom of SYMPTOMS) {
    const found = search
      .search(symptom, options)
      .slice(0, 3)
      .map(({ id }) => id);
    if (!found.some((id) => id.includes('lost-logins'))) throw new Error(`"${symptom}" finds ${found.join(', ')}`);
  }
}
