/** As much of an answer to API Gateway as a browser needs. */
interface Answer {
  readonly statusCode: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly cookies?: readonly string[];
  readonly body: string;
}

type LambdaHandler = (event: unknown, context: unknown) => Promise<Answer>;

/** A browser in front of API Gateway: calls a handler with events of its HTTP API, version 2.0. */
export class Lambda {
  readonly #handler: LambdaHandler;
  readonly #origin: string;
  readonly #cookies = new Map<string, string>();

  constructor(handler: LambdaHandler, origin: string) {
    this.#handler = handler;
    this.#origin = origin;
  }

  /** Opens a page, logs in where that leads to the service, and returns the page after all redirects. */
  async logIn(path: string): Promise<Answer> {
    let answer = await this.#visit(path);
    for (let location = answer.headers.location; location !== undefined; location = answer.headers.location) {
      const target = new URL(location, this.#origin);
      answer = await this.#visit(target.origin === this.#origin ? target.href : await approve(target));
    }
    return answer;
  }

  async #visit(url: string): Promise<Answer> {
    const { host, pathname, search } = new URL(url, this.#origin);
    const answer = await this.#handler(
      {
        version: '2.0',
        rawPath: pathname,
        rawQueryString: search.slice(1),
        cookies: [...this.#cookies].map((pair) => pair.join('=')),
        headers: { host, accept: 'text/html', 'x-forwarded-proto': 'https' },
        requestContext: { http: { method: 'GET', path: pathname, sourceIp: '192.0.2.1' } },
        isBase64Encoded: false,
      },
      {},
    );
    // A single cookie may stand in the headers: API Gateway sends both.
    const single = answer.headers['set-cookie'];
    for (const line of [...(answer.cookies ?? []), ...(single === undefined ? [] : [single])]) {
      const [pair = ''] = line.split(';');
      this.#cookies.set(pair.slice(0, pair.indexOf('=')), pair.slice(pair.indexOf('=') + 1));
    }
    return answer;
  }
}

/** Approves on the consent page, and returns the callback URL that it leads to. */
async function approve(consent: URL): Promise<string> {
  const body = new URLSearchParams(consent.search);
  body.set('user', '1');
  body.set('decision', 'approve');
  const { headers } = await fetch(`${consent.origin}${consent.pathname}`, { method: 'POST', body, redirect: 'manual' });
  return headers.get('location') ?? '';
}
