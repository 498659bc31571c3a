import { once } from 'node:events';
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';

/** A token request as it passed, and the server's answer. */
export interface TokenRequest {
  readonly parameters: URLSearchParams;
  readonly status: number;
  /** The JSON of the answer; empty if it is none. */
  readonly answer: Readonly<Record<string, unknown>>;
}

/** Stands before an authorization server. Browsers, the application and its API reach the server through it alone. */
export class Gateway {
  readonly #server = createServer({ keepAliveTimeout: 0 }, (req, res) => this.#pass(req, res));
  readonly #target: { readonly port: number; readonly tokenPath: string };
  #losesNextAnswer = false;
  /** The token requests that reached the server, in order. */
  readonly tokenRequests: TokenRequest[] = [];

  constructor(target: { readonly port: number; readonly tokenPath: string }) {
    this.#target = target;
  }

  get origin(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async listen(): Promise<void> {
    await once(this.#server.listen(0, '127.0.0.1'), 'listening');
  }

  /** The next token request takes effect, and its connection breaks before the answer. */
  loseNextAnswer(): void {
    this.#losesNextAnswer = true;
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, 'close');
  }

  async #pass(req: IncomingMessage, res: ServerResponse): Promise<void> {
    const body = await buffer(req);
    const { method, url: path, headers } = req;
    // The header Host stays: servers make addresses of their own from it.
    const passed = request({ host: '127.0.0.1', port: this.#target.port, method, path, headers, agent: false });
    passed.on('error', () => res.destroy());
    passed.on('response', async (answer) => {
      const text = await buffer(answer).catch(() => undefined);
      if (text === undefined) return void res.destroy();
      const { statusCode: status = 0 } = answer;
      if (method === 'POST' && path?.split('?')[0] === this.#target.tokenPath) {
        this.tokenRequests.push({ parameters: new URLSearchParams(`${body}`), status, answer: jsonOf(`${text}`) });
        if (this.#losesNextAnswer) {
          this.#losesNextAnswer = false;
          return void res.destroy();
        }
      }
      const { 'transfer-encoding': _whole, connection: _own, ...others } = answer.headers;
      res.writeHead(status, others).end(text);
    });
    passed.end(body);
  }
}

function jsonOf(text: string): TokenRequest['answer'] {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? { ...value } : {};
  } catch {
    return {};
  }
}
