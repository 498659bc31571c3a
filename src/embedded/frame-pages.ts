import { randomBytes } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { FrameWords } from './frame-options.js';

const CSS = `:root{color-scheme:light dark;--line:#0b57d0;--on:#fff}
@media (prefers-color-scheme:dark){:root{--line:#a8c7fa;--on:#062e6f}}
body{margin:0;min-height:100vh;display:grid;place-items:center;background:Canvas;color:CanvasText;font:16px/1.5 system-ui,sans-serif}
main{box-sizing:border-box;width:100%;max-width:28rem;padding:1.5rem;text-align:center;overflow-wrap:anywhere}
h1{margin:0 0 .5rem;font-size:1.25rem}p{margin:0 0 1rem}
button{font:inherit;font-weight:600;min-height:44px;padding:.5rem 1.5rem;border:0;border-radius:8px;background:var(--line);color:var(--on);cursor:pointer}
button:focus-visible{outline:3px solid CanvasText;outline-offset:2px}
[role=status]{margin:1rem 0}button+p{min-height:4.5rem}small:not([hidden]){display:block}`;

/** Runs in the frame. `d`: the values of {@link buttonPage}. */
const BUTTON_SCRIPT = `const say=t=>{document.querySelector('[role=status]').textContent=t};let popup;
document.querySelector('button').onclick=()=>{popup?.close();popup=open(d.url,'_blank','popup,width=520,height=680');say(popup?d.waiting:d.blocked)};
const send=async(init)=>{const answer=await fetch(d.path,{headers:{'x-requested-with':'fetch'},...init});if(!answer.ok)throw new Error(answer.status)};
addEventListener('message',async({origin,source,data})=>{
if(!popup||source!==popup||origin!==location.origin||data?.type!==d.type)return;
try{
if(data.code){await send({method:'POST',headers:{'x-requested-with':'fetch','content-type':'application/json'},body:JSON.stringify({code:data.code,verifier:d.verifier})});await send()}
if(!data.refused)return location.reload();
const own=location.search.slice(1).split('&').filter(each=>each&&!each.startsWith(d.refused+'='));
location.replace('?'+[...own,d.refused+'='+data.refused].join('&'))}catch(error){say(d.failed+' ('+error.message+')')}});`;

/** Runs in the popup. `d`: the values of {@link endPage}. */
const END_SCRIPT = `if(window.opener&&!opener.closed){opener.postMessage({type:d.type,code:d.code,refused:d.refused},location.origin);close()}
else{document.querySelector('[role=status]').textContent=d.lost;document.querySelector('small').hidden=false}`;

/**
 * The parameter that the frame's address gets, with the scopes that its user has just refused: the frame may have no cookies. The
 * application's own parameters stay as they are.
 */
export const REFUSED = 'oauth-app.refused';

/** Type of the message that the popup sends to the frame. */
const MESSAGE = 'passport-oauth-app';

const FOR_DEVELOPERS =
  'For developers: Cross-Origin-Opener-Policy of the service cuts the link. The option identify of embedded() works without it.';

/** A page for a frame or a popup. */
export interface FramePage {
  readonly status: number;
  readonly words: FrameWords;
  /** Content of `main`, as HTML. */
  readonly main: string;
  readonly script?: string;
  /** The value of `d` in the script. */
  readonly values?: object;
  /** Sources of `frame-ancestors` (CSP Level 3, 6.4.2). */
  readonly ancestors: string;
}

/** Returns the page of the frame: a button that opens the login in a popup. */
export function buttonPage(
  words: FrameWords,
  frameAncestors: readonly string[],
  values: { readonly url: string; readonly path: string; readonly verifier: string },
): FramePage {
  const { waiting, blocked, failed } = words;
  return {
    status: 401,
    words,
    main: `<h1>${escaped(words.title)}</h1><p>${escaped(words.help)}</p><button type="button">${escaped(words.button)}</button><p role="status"></p>`,
    script: BUTTON_SCRIPT,
    values: { ...values, type: MESSAGE, refused: REFUSED, waiting, blocked, failed },
    ancestors: frameAncestors.join(' '),
  };
}

/** What a popup brings its frame. */
export interface PopupResult {
  /** Names the new session; left out where the frame's requests identify their user. */
  readonly code?: string | undefined;
  /** The scopes that the user has refused, sealed. */
  readonly refused?: string | undefined;
}

/** Returns the page that ends a popup whose login has succeeded. */
export function endPage(words: FrameWords, result: PopupResult): FramePage {
  const isCarried = result.code !== undefined;
  const page = messagePage(200, words, words.done, `<small hidden>${isCarried ? FOR_DEVELOPERS : ''}</small>`);
  return withResult(page, result, isCarried ? words.noOpener : words.reload);
}

/** Returns the page that ends a popup whose user has refused the scopes that the frame lacks. */
export function declinedPage(words: FrameWords, result: PopupResult): FramePage {
  return withResult(messagePage(403, words, words.declined, '<small hidden></small>'), result, words.declined);
}

/** Has a page of the popup bring its result to the frame. @param lost What the user reads if the popup lost its opener. */
function withResult(page: FramePage, result: PopupResult, lost: string): FramePage {
  return { ...page, script: END_SCRIPT, values: { ...result, type: MESSAGE, lost } };
}

/** Returns a page of the popup that only shows a message. @param more HTML */
export function messagePage(status: number, words: FrameWords, message: string, more = ''): FramePage {
  const main = `<h1>${escaped(words.title)}</h1><p role="status">${escaped(message)}</p>${more}`;
  return { status, words, main, ancestors: "'none'" };
}

/** A page as it is sent. */
export interface RenderedPage {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | number>>;
  readonly body: string;
}

/** Returns a page as it is sent, with a new nonce. */
export function renderFramePage({ status, words, main, script, values, ancestors }: FramePage): RenderedPage {
  const nonce = randomBytes(16).toString('base64');
  // A text such as "</script>" would end the script.
  const data = JSON.stringify(values)?.replaceAll('<', '\\u003c');
  const code = script === undefined ? '' : `<script nonce="${nonce}">{const d=${data};${script}}</script>`;
  const body = `<!doctype html><html lang="${escaped(words.lang)}"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1"><title>${escaped(words.title)}</title><style nonce="${nonce}">${CSS}</style></head><body><main>${main}</main>${code}</body></html>`;
  const headers = {
    'Content-Security-Policy': `default-src 'none'; script-src 'nonce-${nonce}'; style-src 'nonce-${nonce}'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors ${ancestors}`,
    'Cache-Control': 'no-store',
    'Referrer-Policy': 'no-referrer',
    'X-Content-Type-Options': 'nosniff',
    'Content-Type': 'text/html; charset=utf-8',
    'Content-Length': Buffer.byteLength(body),
  };
  return { status, headers, body };
}

/** Headers that an application sets for its own pages. */
const OF_OTHER_PAGES = ['X-Frame-Options', 'Cross-Origin-Opener-Policy', 'Location', 'ETag', 'Last-Modified'];

/** Sets status and headers of a page, in place of those that the response has. */
export function setFrameHead(res: ServerResponse, { status, headers }: RenderedPage): void {
  for (const name of [...OF_OTHER_PAGES, 'Content-Encoding', 'Transfer-Encoding']) res.removeHeader(name);
  res.statusCode = status;
  for (const [name, value] of Object.entries(headers)) res.setHeader(name, value);
}

/** Sends a page. */
export function sendFramePage(req: IncomingMessage, res: ServerResponse, page: FramePage): void {
  const rendered = renderFramePage(page);
  setFrameHead(res, rendered);
  res.end(req.method === 'HEAD' ? undefined : rendered.body);
}

function escaped(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}
