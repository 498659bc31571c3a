import type { IncomingMessage, ServerResponse } from 'node:http';
import { type FramePage, renderFramePage, setFrameHead } from './frame-pages.js';

/** `held`: nothing was sent. `replaced`: a page will take the answer's place. `sent`: it has. `passed`: what comes is sent as it is. */
type State = 'held' | 'replaced' | 'sent' | 'passed';

/** Headers that an answer has set for its own content. */
const OF_ANSWER = ['Location', 'ETag', 'Last-Modified', 'Content-Type', 'Content-Length', 'Content-Encoding'];

/** Keeps the window that a response is for linked to its opener. helmet, for example, would cut it off. */
export function keepOpener(res: ServerResponse): void {
  const { writeHead } = res;
  const writeHeadWithOpener = (...args: unknown[]): unknown => {
    // Middleware that is mounted later, or listens for the headers, has set its own by now.
    res.removeHeader('Cross-Origin-Opener-Policy');
    return Reflect.apply(writeHead, res, args);
  };
  Object.assign(res, { writeHead: writeHeadWithOpener });
}

/**
 * Holds an answer back until it begins, and has a page take its place if there is one by then.
 *
 * Other middleware wraps responses, too, and may call these methods more than once for one answer, or later: compression
 * writes when its stream does. So the methods stay in place, and each looks at the state of the answer.
 *
 * @param pageOf Returns the page, once; `undefined` if the answer passes. If it rejects, the answer is dropped.
 * @param fail Called with the reason, to answer otherwise.
 */
export function holdResponse(
  req: IncomingMessage,
  res: ServerResponse,
  pageOf: () => Promise<FramePage> | undefined,
  fail: (error: unknown) => void,
): void {
  const original = { writeHead: res.writeHead, write: res.write, end: res.end, flushHeaders: res.flushHeaders };
  let state: State = 'held';
  let head: unknown[] | undefined;
  let setHead = (): void => res.removeHeader('Cross-Origin-Opener-Policy');

  const send = (page: FramePage): void => {
    const rendered = renderFramePage(page);
    state = 'sent';
    // Once more with the status line: listeners of middleware that is mounted later have set theirs by then.
    setHead = () => setFrameHead(res, rendered);
    setHead();
    Reflect.apply(original.end, res, req.method === 'HEAD' ? [] : [rendered.body]);
  };
  const decide = (): void => {
    const page = res.headersSent ? undefined : pageOf();
    state = page ? 'replaced' : 'passed';
    if (!page && head && !res.headersSent) Reflect.apply(original.writeHead, res, head);
    page?.then(send).catch((error: unknown) => {
      // The answer is dropped for good: whatever still writes of it is not heard.
      Object.assign(res, original);
      for (const name of OF_ANSWER) res.removeHeader(name);
      fail(error);
    });
  };
  const passing = (method: 'write' | 'end', swallowed: unknown) => {
    return (...args: unknown[]): unknown => {
      if (state === 'held') decide();
      return state === 'passed' ? Reflect.apply(original[method], res, args) : swallowed;
    };
  };
  Object.assign(res, {
    writeHead: (...args: unknown[]): unknown => {
      if (state === 'held') {
        head ??= args;
        res.statusCode = Number(args[0]);
      }
      const isDue = state === 'passed' || (state === 'sent' && !res.headersSent);
      if (!isDue) return res;
      setHead();
      return Reflect.apply(original.writeHead, res, args);
    },
    write: passing('write', true),
    end: passing('end', res),
    flushHeaders: () => {
      if (state === 'passed') original.flushHeaders.call(res);
    },
  });
}
