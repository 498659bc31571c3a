// Prepares package.json, README.md and docs for publishing from a repository on GitHub: `node .github/release/prepare.mjs`.
//
// npm's page of a package has no folder to resolve relative links in. So README.md gets absolute links to the files of the
// released version, and package.json the addresses of the repository. Pages of docs get absolute links to the pages that stay out
// of the package. The files are changed in place: the workflow runs this in a checkout of its own, and commits nothing.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/** Adds the addresses of a repository to the manifest of a package. */
export function withAddresses(manifest, repository, server = 'https://github.com') {
  return {
    ...manifest,
    homepage: `${server}/${repository}#readme`,
    bugs: { url: `${server}/${repository}/issues` },
    repository: { type: 'git', url: `git+${server}/${repository}.git` },
  };
}

/** Makes the relative links and pictures of a document absolute. */
export function withAbsoluteLinks(text, repository, tag, server = 'https://github.com') {
  const file = `${server}/${repository}/blob/${tag}/`;
  const raw = `${server}/${repository}/raw/${tag}/`;
  return text
    .replaceAll(/(!\[[^\]]*\]\()(?!https?:|#)(?:\.\/)?([^)]+)\)/g, (_, start, path) => `${start}${raw}${path})`)
    .replaceAll(/(<img [^>]*src=")(?!https?:)(?:\.\/)?([^"]+)"/g, (_, start, path) => `${start}${raw}${path}"`)
    .replaceAll(/(\]\()(?!https?:|#)(?:\.\/)?([^)]+)\)/g, (_, start, path) => `${start}${file}${path})`);
}

/** Makes the links of a page in docs to pages that are not published absolute. The list `files` of package.json says which these are. */
export function withLinksToUnpublished(text, { files }, repository, tag, server = 'https://github.com') {
  return text.replaceAll(/(\]\()(?:\.\/)?([\w/-]+\.md)(#[^)]*)?\)/g, (link, start, page, anchor = '') => {
    const isPublished = !page.includes('/') && !files.includes(`!docs/${page}`);
    return isPublished ? link : `${start}${server}/${repository}/blob/${tag}/docs/${page}${anchor})`;
  });
}

function prepare({ GITHUB_REPOSITORY: repository, GITHUB_REF_NAME: tag, GITHUB_SERVER_URL: server }) {
  if (!repository || !tag)
    throw new Error('GITHUB_REPOSITORY and GITHUB_REF_NAME are missing: this runs in a workflow');
  const root = new URL('../../', import.meta.url);
  const manifest = JSON.parse(readFileSync(new URL('package.json', root), 'utf8'));
  writeFileSync(
    new URL('package.json', root),
    `${JSON.stringify(withAddresses(manifest, repository, server), undefined, 2)}\n`,
  );
  const readme = readFileSync(new URL('README.md', root), 'utf8');
  writeFileSync(new URL('README.md', root), withAbsoluteLinks(readme, repository, tag, server));
  const docs = new URL('docs/', root);
  for (const page of readdirSync(docs).filter((name) => name.endsWith('.md'))) {
    const text = readFileSync(new URL(page, docs), 'utf8');
    writeFileSync(new URL(page, docs), withLinksToUnpublished(text, manifest, repository, tag, server));
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) prepare(process.env);
