import { defineConfig } from 'vitepress';
import { entryPoints } from '../reference.mjs';

const page = (text, name) => ({ text, link: `/docs/${name}` });

/** Each page of docs/ is in one group. */
const sidebar = [
  {
    text: 'Start',
    items: [
      { text: 'Overview', link: '/README' },
      page('Tutorial', 'tutorial'),
      page('Example application', 'example-app'),
    ],
  },
  {
    text: 'How to',
    items: [
      page('Run in production', 'production'),
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
      page('Migrate', 'migration'),
    ],
  },
  {
    text: 'Reference',
    items: [
      page('Options', 'options'),
      page('Providers', 'providers'),
      page('Authorization servers', 'servers'),
      page('Errors', 'errors'),
      page('Events', 'events'),
      page('Observability', 'observability'),
      page('A store of your own', 'own-store'),
      page('Compatibility', 'compatibility'),
      {
        text: 'API',
        collapsed: true,
        items: entryPoints().map(({ name }) => ({ text: name, link: `/reference/${name}` })),
      },
    ],
  },
  {
    text: 'Explanation',
    items: [
      page('How refresh tokens get lost', 'lost-logins'),
      page('The refresh protocol', 'refresh-protocol'),
      page('Chaos', 'chaos'),
      page('Security', 'security'),
      page('Performance', 'performance'),
      page('Architecture', 'architecture'),
      page('Dependencies', 'dependencies'),
    ],
  },
  {
    text: 'Help',
    items: [page('Troubleshooting and FAQ', 'troubleshooting'), { text: 'Report a vulnerability', link: '/SECURITY' }],
  },
  {
    text: 'Project',
    items: [
      { text: 'Contribute', link: '/CONTRIBUTING' },
      { text: 'Changelog', link: '/CHANGELOG' },
    ],
  },
];

export default defineConfig({
  title: 'passport-oauth-app',
  description: 'A Passport strategy that gives every request an authenticated API client that never goes stale.',
  lang: 'en',
  // The address below which the site is served: /REPOSITORY/ on GitHub Pages.
  base: process.env.SITE_BASE ?? '/',
  // build.mjs collects the pages there.
  srcDir: '.pages',
  outDir: 'dist',
  cleanUrls: true,
  lastUpdated: false,
  // Pages of the tutorial's own application. All other dead links fail the build.
  ignoreDeadLinks: 'localhostLinks',
  markdown: { config: renderMermaid },
  themeConfig: { sidebar, search: { provider: 'local' }, outline: [2, 3] },
});

/** Turns a block in the language `mermaid` into the component that draws it in the browser. */
function renderMermaid(markdown) {
  const fence = markdown.renderer.rules.fence;
  markdown.renderer.rules.fence = (tokens, index, ...rest) => {
    const { info, content } = tokens[index];
    if (info.trim() !== 'mermaid') return fence(tokens, index, ...rest);
    return `<MermaidDiagram code="${encodeURIComponent(content)}" />`;
  };
}
