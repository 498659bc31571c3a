// Draws the diagrams of the pages as SVG when the site is built, in a Chromium of this computer: a reader's browser loads no script for them.
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { chromium } from 'playwright-core';

const THEMES = { light: 'neutral', dark: 'dark' };
const BROWSERS = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'];

/** Returns the name of the files of a diagram. Another text has another name, so that no browser shows an old picture. */
export function diagramName(code) {
  return createHash('sha256').update(code).digest('hex').slice(0, 16);
}

/** Draws all diagrams of the pages below a folder, for the light and the dark theme, into `target`. */
export async function drawDiagrams(pages, target) {
  const codes = readdirSync(pages, { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.md'))
    .flatMap((file) => [...readFileSync(join(pages, file), 'utf8').matchAll(/^```mermaid\n([\s\S]*?)^```$/gm)])
    .map(([, code]) => code);
  const executablePath = process.env.CHROMIUM ?? BROWSERS.find(existsSync);
  if (executablePath === undefined)
    throw new Error(`The diagrams need a Chromium: expected one at ${BROWSERS.join(', ')}, or its path in CHROMIUM`);
  const browser = await chromium.launch({ executablePath, args: ['--no-sandbox'] });
  try {
    const page = await browser.newPage();
    await page.addScriptTag({ path: fileURLToPath(import.meta.resolve('mermaid/dist/mermaid.min.js')) });
    mkdirSync(target, { recursive: true });
    for (const code of new Set(codes)) {
      for (const [name, theme] of Object.entries(THEMES)) {
        const svg = await page.evaluate(draw, { code, theme });
        writeFileSync(join(target, `${diagramName(code)}-${name}.svg`), svg);
      }
    }
  } finally {
    await browser.close();
  }
}

/** Runs in the browser. Labels are text of the SVG: a picture shows no HTML in every browser. */
async function draw({ code, theme }) {
  const { mermaid } = globalThis;
  const themeVariables = { fontFamily: 'sans-serif' };
  mermaid.initialize({
    startOnLoad: false,
    securityLevel: 'strict',
    theme,
    themeVariables,
    htmlLabels: false,
    flowchart: { htmlLabels: false },
    gantt: { useWidth: 720 },
  });
  const { svg } = await mermaid.render('diagram', code);
  const drawn = new DOMParser().parseFromString(svg, 'text/html').querySelector('svg');
  // Its own size in place of the page's width: on a phone it scrolls and stays readable.
  const [, , width, height] = drawn.getAttribute('viewBox').split(' ');
  drawn.removeAttribute('style');
  drawn.setAttribute('width', width);
  drawn.setAttribute('height', height);
  return new XMLSerializer().serializeToString(drawn);
}
