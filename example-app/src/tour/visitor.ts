import { type IncomingMessage, type RequestOptions, request } from 'node:http';
import { text } from 'node:stream/consumers';

/** An answer, with its body read. */
export interface Answer {
  readonly method: string;
  readonly url: URL;
  readonly status: number;
  readonly text: string;
  /** Where it redirects to. */
  readonly location: URL | undefined;
}

/** A person with a browser, as far as a login needs one: cookies for each host and port, and no redirect followed unseen. */
export class Visitor {
  readonly #jars = new Map<string, Map<string, string>>();

  /** Opens a page. */
  async get(url: URL | string): Promise<Answer> {
    return this.#send('GET', new URL(url));
  }

  /** Sends a form. */
  async post(url: URL | string, fields: URLSearchParams = new URLSearchParams()): Promise<Answer> {
    return this.#send('POST', new URL(url), fields);
  }

  async #send(method: string, url: URL, body?: URLSearchParams): Promise<Answer> {
    const jar = this.#jar(url);
    const cookie = [...jar].map(([name, value]) => `${name}=${value}`).join('; ');
    const headers = {
      accept: 'text/html',
      ...(cookie ? { cookie } : {}),
      ...(body ? { 'content-type': 'application/x-www-form-urlencoded' } : {}),
    };
    const response = await send(url, { method, headers, agent: false }, body?.toString());
    for (const line of response.headers['set-cookie'] ?? []) keep(jar, line);
    const { location } = response.headers;
    return {
      method,
      url,
      status: response.statusCode ?? 0,
      text: await text(response),
      location: location === undefined ? undefined : new URL(location, url),
    };
  }

  #jar({ host }: URL): Map<string, string> {
    const jar = this.#jars.get(host) ?? new Map<string, string>();
    this.#jars.set(host, jar);
    return jar;
  }
}

// Not fetch: its headers mark it as a script, and scripts are not redirected to a login.
function send(url: URL, options: RequestOptions, body: string | undefined): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    request(url, options, resolve).once('error', reject).end(body);
  });
}

function keep(jar: Map<string, string>, line: string): void {
  const [pair = ''] = line.split(';');
  const name = pair.slice(0, pair.indexOf('='));
  if (/;\s*(max-age=0|expires=Thu, 01 Jan 1970)/i.test(line)) jar.delete(name);
  else jar.set(name, pair.slice(pair.indexOf('=') + 1));
}
