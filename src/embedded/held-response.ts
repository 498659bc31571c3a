import type { IncomingMessage, ServerResponse } from 'node:http';
import { type FramePage, renderFramePage, setFrameHead } from './frame-pages.js';

/** `held`: the answer has not ended. `ended`: it waits for the page. `sent`: the page took its place. `passed`: what comes is sent as it is. */
type ResponseState = 'held' | 'ended' | 'sent' | 'passed';

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
 * Holds an answer back until it ends, and has a page take its place if there is one by then. A refusal may follow its first piece.
 *
 * Other middleware wraps responses, too, and may call these methods more than once for one answer, or later: compression
 * writes when its stream does. So the methods stay in place, and each looks at the state of the answer.
 *
 * @param pageOf Returns the page, once; `undefined`, at once or later, if the answer passes. If it rejects, the answer is dropped.
 * @param fail Called with the reason, to answer otherwise.
 */
export function holdResponse(
  req: IncomingMessage,
  res: ServerResponse,
  pageOf: () => Promise<FramePage | undefined> | undefined,
  fail: (error: unknown) => void,
): void {
  const original = { writeHead: res.writeHead, write: res.write, end: res.end, flushHeaders: res.flushHeaders };
  const held: (readonly [method: 'write' | 'end', args: readonly unknown[]])[] = [];
  let state: ResponseState = 'held';
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
  const pass = (): void => {
    state = 'passed';
    // An error handler that took the headers for unsent may have counted its own piece alone.
    if (held.length > 1 && !res.headersSent) res.removeHeader('Content-Length');
    if (head && !res.headersSent) Reflect.apply(original.writeHead, res, head);
    for (const [method, args] of held) Reflect.apply(original[method], res, args);
  };
  const decide = (): void => {
    const ending = res.headersSent ? undefined : pageOf();
    if (ending) state = 'ended';
    else pass();
    const settle = (page: FramePage | undefined) => (page ? send(page) : pass());
    ending?.then(settle).catch((error: unknown) => {
      // The answer is dropped for good: whatever still writes of it is not heard.
      Object.assign(res, original);
      for (const name of OF_ANSWER) res.removeHeader(name);
      fail(error);
    });
  };
  const holding = (method: 'write' | 'end', answer: unknown) => {
    return (...args: unknown[]): unknown => {
      if (state === 'passed') return Reflect.apply(original[method], res, args);
      const done = args.find((each) => typeof each === 'function');
      if (done && method === 'end' && !res.writableFinished) res.once('finish', () => done());
      else if (done) process.nextTick(() => done());
      if (state === 'held') {
        held.push([method, args.filter((each) => each !== done)]);
        if (method === 'end') decide();
      }
      return answer;
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
    write: holding('write', true),
    end: holding('end', res),
    flushHeaders: () => {
      if (state === 'passed') original.flushHeaders.call(res);
    },
  });
}
