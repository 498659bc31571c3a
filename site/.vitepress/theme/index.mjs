import { withBase } from 'vitepress';
import DefaultTheme from 'vitepress/theme';
import { h } from 'vue';
import './site.css';

/** A diagram that build.mjs has drawn, in the theme that the page has. */
function SiteDiagram({ name, label }) {
  const pictures = ['light', 'dark'].map((theme) =>
    h('img', { class: theme, src: withBase(`/diagrams/${name}-${theme}.svg`), alt: label, loading: 'lazy' }),
  );
  return h('figure', { class: 'diagram' }, pictures);
}
SiteDiagram.props = ['name', 'label'];

export default {
  extends: DefaultTheme,
  enhanceApp({ app }) {
    app.component('SiteDiagram', SiteDiagram);
  },
};
