import { defineConfig } from 'vitepress';
import manifest from '../../package.json' with { type: 'json' };
import { diagramName } from '../diagrams.mjs';
import { entryPoints } from '../reference.mjs';

const page = (text, name) => ({ text, link: `/docs/${name}` });

/** Each page of docs/ is in one group. */
export const sidebar = [
  {
    text: 'Start',
    items: [
      { text: 'Overview', link: '/README' },
      page('Tutorial', 'tutorial'),
      page('How refresh tokens get lost', 'lost-logins'),
      page('Example application', 'example-app'),
    ],
  },
  {
    text: 'How to',
    items: [
      page('Choose a store', 'stores'),
      page('Operate', 'production'),
      page('Call the API', 'api-client'),
      page('Jobs and webhooks', 'jobs'),
      page('List grants, keep them alive', 'grants'),
      page('Single-page apps and popups', 'single-page-apps'),
      page('Inside another application', 'embedded'),
      page('Agents and MCP servers', 'agents'),
      page('Accounts and sessions', 'accounts'),
      page('Frameworks and tools', 'frameworks'),
      page('Test your application', 'testing'),
      page('Run the emulator', 'emulator'),
      page('Tenants', 'tenants'),
      page('Migrate', 'migration'),
    ],
  },
  {
    text: 'Reference',
    items: [
      page('Options', 'options'),
      page('Providers', 'providers'),
      page('Errors and troubleshooting', 'errors'),
      page('Events and observability', 'events'),
      page('A store of your own', 'own-store'),
      page('Compatibility', 'compatibility'),
      page('Specifications', 'specifications'),
      {
        text: 'API',
        collapsed: true,
        items: entryPoints().map(({ name }) => ({ text: name, link: `/reference/${name}` })),
      },
    ],
  },
  {
    text: 'Evidence',
    collapsed: true,
    items: [
      page('Security', 'security'),
      page('Authorization servers', 'servers'),
      page('Performance', 'performance'),
      page('The refresh protocol', 'refresh-protocol'),
      page('Chaos', 'chaos'),
      page('Architecture', 'architecture'),
      page('Dependencies', 'dependencies'),
      page('Figures: performance', 'figures/performance'),
      page('Figures: chaos', 'figures/chaos'),
      page('Figures: compatibility', 'figures/compatibility'),
      page('Figures: simulation', 'figures/simulation'),
      page('Figures: security', 'figures/security'),
      page('Figures: mutation', 'figures/mutation'),
      page('Figures: refused refreshes', 'figures/refusals'),
      page('Figures: authorization servers', 'figures/servers'),
      page('Figures: development dependencies', 'figures/dependencies'),
    ],
  },
  {
    text: 'Project',
    items: [
      { text: 'Report a vulnerability', link: '/SECURITY' },
      { text: 'Contribute', link: '/CONTRIBUTING' },
      { text: 'Changelog', link: '/CHANGELOG' },
    ],
  },
];

const base = process.env.SITE_BASE ?? '/';
const npm = `https://www.npmjs.com/package/${manifest.name}`;
/** The repository whose workflow builds the site; none elsewhere. */
const { GITHUB_SERVER_URL = 'https://github.com', GITHUB_REPOSITORY } = process.env;
const repository = GITHUB_REPOSITORY && `${GITHUB_SERVER_URL}/${GITHUB_REPOSITORY}`;

export default defineConfig({
  title: manifest.name,
  description: 'OAuth login for Express that keeps its tokens fresh: every request gets an authenticated API client.',
  head: [['link', { rel: 'icon', type: 'image/svg+xml', href: `${base}favicon.svg` }]],
  lang: 'en',
  // The address below which the site is served: /REPOSITORY/ on GitHub Pages.
  base,
  // build.mjs collects the pages there.
  srcDir: '.pages',
  outDir: 'dist',
  cleanUrls: true,
  lastUpdated: false,
  // Pages of the tutorial's own application, and files to copy that build.mjs serves. All other dead links fail the build.
  ignoreDeadLinks: [/^https?:\/\/localhost\b/, /\.\/examples\/[\w-]+\.cjs$/],
  // The anchors that GitHub makes: links of the pages hold in both.
  markdown: { config: showDiagrams, anchor: { slugify } },
  themeConfig: {
    sidebar,
    nav: [{ text: `v${manifest.version}`, link: '/CHANGELOG' }],
    socialLinks: [
      { icon: 'npm', link: npm, ariaLabel: 'npm' },
      ...(repository ? [{ icon: 'github', link: repository, ariaLabel: 'Repository' }] : []),
    ],
    outline: [2, 3],
    search: { provider: 'local', options: { miniSearch: { searchOptions: { boostDocument } } } },
  },
});

function slugify(heading) {
  return heading
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}_\- ]/gu, '')
    .replaceAll(' ', '-');
}

/** Turns a block in the language `mermaid` into the picture that build.mjs has drawn of it. */
function showDiagrams(markdown) {
  const fence = markdown.renderer.rules.fence;
  markdown.renderer.rules.fence = (tokens, index, options, env, self) => {
    const { info, content } = tokens[index];
    if (info.trim() !== 'mermaid') return fence(tokens, index, options, env, self);
    return `<SiteDiagram name="${diagramName(content)}" label="Diagram: ${headingBefore(tokens, index)}" />`;
  };
}

function headingBefore(tokens, index) {
  const heading = tokens.slice(0, index).findLastIndex(({ type }) => type === 'heading_open');
  return heading < 0 ? 'overview' : tokens[heading + 1].content.replaceAll(/[^\w ,'-]/g, '');
}

/** Ranks written pages above generated ones, the page about the symptoms first, and the emulator's reference last. */
export function boostDocument(id) {
  if (id.includes('lost-logins')) return 4;
  if (id.includes('/reference/')) return id.includes('emulator') ? 0.1 : 0.5;
  return /\/figures\/|CHANGELOG|CONTRIBUTING|docs\/(?:emulator|testing)/.test(id) ? 0.5 : 2;
}
