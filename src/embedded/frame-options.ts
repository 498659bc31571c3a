import type { IncomingMessage } from 'node:http';
import {
  fn,
  isSecureUrl,
  type Optional,
  optionError,
  type Reader,
  type Readers,
  readOptions,
  requiredOption,
  text,
  withDefault,
} from '../checks.js';
import { ConfigurationError } from '../errors.js';
import { loginRoute } from '../middleware/login-redirect.js';
import { pathOf } from '../session/visit.js';

/** Options of `embedded`. */
export interface EmbeddedOptions {
  /** A path that no other route uses, such as `/login/frame`. The frame posts the popup's code to it. */
  readonly path: string;
  /** Path of the login route, which the popup opens. */
  readonly login: string;
  /** Origins of the service whose pages may show the application in a frame: https, or http on a loopback host. */
  readonly frameAncestors: readonly string[];
  /**
   * Returns the user of the signed token that a request of the frame brings from the service; `undefined` without one. The
   * frame then needs no session. Requires the strategy's option `grantId`.
   */
  readonly identify?: ((req: IncomingMessage & Express.Request) => unknown) | undefined;
  /** Words of the pages. Default: English. */
  readonly words?: Partial<FrameWords> | undefined;
}

/** The options, read. */
export type FrameSettings = Required<Pick<EmbeddedOptions, 'path' | 'login' | 'frameAncestors' | 'identify'>> & {
  readonly words: FrameWords;
};

/** Reads the options of `embedded`. @throws ConfigurationError that names the wrong one */
export function readFrameOptions(options: unknown): FrameSettings {
  return readOptions<FrameSettings>('embedded(strategy, options)', options, {
    path: requiredOption(ownPath),
    login: requiredOption(loginRoute.read as Reader<string>),
    frameAncestors: requiredOption(origins),
    identify: withDefault(undefined, fn<EmbeddedOptions['identify']>),
    words: frameWords,
  });
}

/** Returns the error for a wrong order of middleware. */
export function misplaced(where: string): ConfigurationError {
  return new ConfigurationError(
    `embedded(strategy, …) has to be mounted ${where}: mount express-session, then this, then apiClient(strategy), then the routes.`,
    { code: 'ERR_MIDDLEWARE_ORDER' },
  );
}

/** Words of the two pages, in English. `lang` is their language (BCP 47). */
const ENGLISH = {
  lang: 'en',
  title: 'Log in',
  help: 'The application needs your permission. You give it in a window that opens.',
  button: 'Log in',
  waiting: 'Go on in the window that has opened. Without a window, press the button again.',
  blocked: 'The browser has blocked the window. Allow windows of this page, then press the button again.',
  failed: 'The login did not get through to this page. Press the button again.',
  done: 'You are logged in. You can close this window.',
  noOpener:
    'This window has lost its link to the page that you came from. Close it, and open the application in a tab.',
  reload: 'You are logged in. Close this window, and load the page that you came from again.',
  otherAccount:
    'This is another account than the one of the page that you came from. Nothing was saved. Close this window.',
  declined: 'You have not given the permission. Close this window.',
  tooLarge: 'The login was too large for the page that you came from. You are not logged in. Close this window.',
  stale: 'The application has not opened this window, or too long ago. Close it, and load the application again.',
};

/** Words of the pages for frames: all of them are texts. */
export type FrameWords = Readonly<typeof ENGLISH>;

const WORD_READERS = Object.fromEntries(
  Object.entries(ENGLISH).map(([name, word]) => [name, withDefault(word, text)]),
) as unknown as Readers<FrameWords>;

/** Reads the words of the pages. Those that are left out are English. */
const frameWords: Optional<FrameWords> = withDefault(ENGLISH, (option, value) =>
  readOptions('embedded(strategy, { words })', value, WORD_READERS, option),
);

/** Reads a path of the application. */
function ownPath(option: string, value: unknown): string {
  if (typeof value === 'string' && /^\/(?!\/)[\x21-\x7e]*$/.test(value) && pathOf(value) === value) return value;
  throw optionError(option, 'expected a path that no other route uses, such as /login/frame');
}

/** Reads origins: https, or http of a loopback host. */
function origins(option: string, value: unknown): readonly string[] {
  const all: unknown[] = Array.isArray(value) ? value : [];
  const isOrigin = (one: unknown): boolean => {
    if (typeof one !== 'string' || one.includes('*') || !URL.canParse(one)) return false;
    const url = new URL(one);
    return one === url.origin && isSecureUrl(url);
  };
  if (all.length > 0 && all.every(isOrigin)) return all.map(String);
  throw optionError(option, "expected origins of the service, such as ['https://cad.example.com']: no path, and no *");
}
