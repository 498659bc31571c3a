import type { Browser, Page } from '../support/browser.js';

/** Who logs in at the server, and what they do on its consent page. */
export interface Visitor {
  readonly name: string;
  readonly password: string;
  readonly declines: boolean;
  /** Does to a form's fields what a script of the page does before it is sent. */
  readonly script?: (fields: Map<string, string>, pressed: string) => void;
}

interface Control {
  /** What stands on the button or the link; the value of a button without text. */
  readonly label: string;
  readonly visit: () => Promise<Page>;
}

const MAX_PAGES = 20;

/**
 * Goes on from a page as a person would: follows redirects, fills in login forms, presses a button of a consent page.
 *
 * @param press Labels of what is pressed on a page that leaves a choice.
 * @returns The first address that begins with `until`. It is not visited.
 * @throws If a page has nothing to press.
 */
export async function walk(
  browser: Browser,
  start: Page,
  { visitor, press, until }: { readonly visitor: Visitor; readonly press: RegExp; readonly until: string },
): Promise<string> {
  let page = start;
  for (let pages = 0; pages < MAX_PAGES; pages += 1) {
    const location = page.headers.get('location');
    if (location !== null) {
      const next = new URL(location, page.url).href;
      if (next.startsWith(until)) return next;
      page = await browser.visit(next);
      continue;
    }
    const controls = controlsOf(browser, page, visitor);
    const pressed = controls.find(({ label }) => press.test(label)) ?? controls[0];
    if (pressed === undefined) break;
    page = await pressed.visit();
  }
  throw new Error(`No way on from ${page.url}, which answered ${page.status}: ${page.text.slice(0, 2000)}`);
}

/** Buttons of forms, forms without a button, then links. */
function controlsOf(browser: Browser, page: Page, visitor: Visitor): Control[] {
  const forms = [...page.text.matchAll(/<form\b([^>]*)>(.*?)<\/form>/gis)].flatMap(([, tag = '', content = '']) => {
    const action = new URL(attribute(tag, 'action') || page.url, page.url).href;
    const isPost = attribute(tag, 'method').toLowerCase() === 'post';
    const fields = fieldsOf(content, visitor);
    const submit = (label: string, extra: readonly [string, string][]): Promise<Page> => {
      const sent = new Map([...fields, ...extra]);
      visitor.script?.(sent, label);
      const body = `${new URLSearchParams([...sent])}`;
      const headers = { 'content-type': 'application/x-www-form-urlencoded', referer: page.url };
      if (isPost) return browser.visit(action, { method: 'POST', headers, body });
      return browser.visit(`${action.split('?')[0]}?${body}`);
    };
    const buttons = [...content.matchAll(/<button\b([^>]*)>(.*?)<\/button>|<input\b([^>]*type="?submit[^>]*)>/gis)];
    const controls = buttons.map(([, button, text = '', input]): Control => {
      const attributes = button ?? input ?? '';
      const [name, value] = [attribute(attributes, 'name'), attribute(attributes, 'value')];
      const label = text.replaceAll(/<[^>]*>/g, '').trim() || value;
      return { label, visit: () => submit(label, name === '' ? [] : [[name, value]]) };
    });
    return controls.length > 0 ? controls : [{ label: '', visit: () => submit('', []) }];
  });
  const links = [...page.text.matchAll(/<a\b([^>]*)>(.*?)<\/a>/gis)].map(([, tag = '', text = '']): Control => {
    const address = new URL(attribute(tag, 'href'), page.url).href;
    return { label: text.replaceAll(/<[^>]*>/g, '').trim(), visit: () => browser.visit(address) };
  });
  return [...forms, ...links];
}

/** The fields that a browser sends, with name and password where a form asks for them. */
function fieldsOf(form: string, { name: user, password }: Visitor): [string, string][] {
  return [...form.matchAll(/<input\b([^>]*)>/gi)].flatMap(([, tag = '']): [string, string][] => {
    const [name, type] = [attribute(tag, 'name'), attribute(tag, 'type').toLowerCase() || 'text'];
    if (name === '' || ['submit', 'button', 'image', 'reset'].includes(type)) return [];
    if (type === 'checkbox' && !/\bchecked\b/i.test(tag)) return [];
    if (type === 'password') return [[name, password]];
    return [[name, type === 'text' || type === 'email' ? user : attribute(tag, 'value')]];
  });
}

const ENTITIES: Readonly<Record<string, string>> = { amp: '&', quot: '"', lt: '<', gt: '>', '#39': "'", '#x27': "'" };

/** The value of an attribute; empty if there is none. */
function attribute(tag: string, name: string): string {
  const found = new RegExp(`(?:^|\\s)${name}\\s*=\\s*(?:"([^"]*)"|'([^']*)'|([^\\s"'>]+))`, 'i').exec(tag);
  const text = found?.[1] ?? found?.[2] ?? found?.[3] ?? '';
  return text.replaceAll(/&(\w+|#\w+);/g, (entity, key: string) => ENTITIES[key] ?? entity);
}
