// Writes llms.txt: the pages of the site for language models, each with its title and its first sentences. See https://llmstxt.org.
import { cpSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/**
 * @param pages - The folder with the pages.
 * @param sidebar - Groups of pages, in the order of the menu.
 * @param target - The folder of the built site. It gets the Markdown of the pages too.
 */
export function writeLlmsText(pages, sidebar, target) {
  const base = process.env.SITE_BASE ?? '/';
  const groups = sidebar.map(({ text, items }) => {
    const lines = items
      .filter(({ link }) => link !== undefined)
      .map(({ link }) => {
        const file = `${link.slice(1)}.md`;
        const markdown = readFileSync(join(pages, file), 'utf8');
        cpSync(join(pages, file), join(target, file));
        return `- [${/^# (.+)$/m.exec(markdown)?.[1]}](${base}${file}): ${firstSentences(markdown)}`;
      });
    return `## ${text}\n\n${lines.join('\n')}`;
  });
  const readme = readFileSync(join(pages, 'README.md'), 'utf8');
  writeFileSync(
    join(target, 'llms.txt'),
    `# passport-oauth-app\n\n> ${firstSentences(readme)}\n\n${groups.join('\n\n')}\n`,
  );
}

/** The first paragraph that is text, as one line and without links. */
function firstSentences(markdown) {
  const blocks = markdown.split(/\n{2,}/);
  const text = blocks.find((block) => /^[\w`*[]/.test(block) && !block.startsWith('```')) ?? '';
  return text
    .replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1')
    .replaceAll(/\s+/g, ' ')
    .trim();
}
