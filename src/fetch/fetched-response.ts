import { STATUS_CODES } from 'node:http';
import type { HttpHeaders } from '../http/message.js';

/** A response whose body is complete. */
export interface FetchedBody {
  readonly status: number;
  readonly headers: HttpHeaders;
  readonly bytes: Buffer;
  readonly url: string;
  readonly redirected: boolean;
}

type FetchedResponseClass = new (fetched: FetchedBody) => Response;

let Class: FetchedResponseClass | undefined;

/**
 * Creates a `Response` over a complete body. Its text, JSON and bytes are read without a stream, which is most of the cost of a
 * small response. Anything else comes from an ordinary `Response`, created on demand.
 */
export function fetchedResponse(fetched: FetchedBody): Response {
  // Defined on first use: Node loads its fetch when the global Response is touched.
  Class ??= defineClass();
  return new Class(fetched);
}

function defineClass(): FetchedResponseClass {
  // Its types declare the accessors as properties, which a class cannot override.
  const Base: new (body: null, init: ResponseInit) => object = Response;
  return class FetchedResponse extends Base implements Response {
    declare readonly ok: boolean;
    declare readonly status: number;
    declare readonly statusText: string;
    declare readonly type: Response['type'];
    readonly #fetched: FetchedBody;
    #headers: Headers | undefined;
    #isRead = false;
    /** Owns the body once its stream was asked for. */
    #streamed: Response | undefined;

    constructor(fetched: FetchedBody) {
      const { status } = fetched;
      super(null, { status, statusText: STATUS_CODES[status] ?? '' });
      this.#fetched = fetched;
    }

    get url(): string {
      return this.#fetched.url;
    }

    get redirected(): boolean {
      return this.#fetched.redirected;
    }

    get headers(): Headers {
      this.#headers ??= new Headers(headerPairs(this.#fetched.headers));
      return this.#headers;
    }

    get body(): Response['body'] {
      return this.#asStreamed().body;
    }

    get bodyUsed(): boolean {
      return this.#streamed === undefined ? this.#isRead : this.#streamed.bodyUsed;
    }

    async text(): Promise<string> {
      if (this.#streamed !== undefined) return this.#streamed.text();
      const text = this.#read().toString('utf8');
      return text.charCodeAt(0) === 0xfeff ? text.slice(1) : text;
    }

    async json(): Promise<unknown> {
      return JSON.parse(await this.text());
    }

    async arrayBuffer(): Promise<ArrayBuffer> {
      if (this.#streamed !== undefined) return this.#streamed.arrayBuffer();
      return new Uint8Array(this.#read()).buffer;
    }

    async bytes(): Promise<Uint8Array> {
      return new Uint8Array(await this.arrayBuffer());
    }

    async blob(): Promise<Blob> {
      const type = this.headers.get('content-type') ?? '';
      return new Blob([await this.arrayBuffer()], { type });
    }

    formData(): ReturnType<Response['formData']> {
      return this.#asStreamed().formData();
    }

    clone(): Response {
      if (this.bodyUsed) throw new TypeError('Response.clone: Body has already been consumed.');
      if (this.#streamed === undefined) return new FetchedResponse(this.#fetched);
      return withAddress(this.#streamed.clone(), this.#fetched);
    }

    #read(): Buffer {
      if (this.#isRead) throw new TypeError('Body is unusable: Body has already been read');
      this.#isRead = true;
      return this.#fetched.bytes;
    }

    #asStreamed(): Response {
      if (this.#streamed === undefined) {
        const { status, statusText, headers } = this;
        this.#streamed = new Response(new Uint8Array(this.#fetched.bytes), { status, statusText, headers });
        // A body that was read stays read.
        if (this.#isRead) void this.#streamed.arrayBuffer();
      }
      return this.#streamed;
    }
  };
}

/** Sets what the constructor of a response has no parameters for, in each clone too. */
export function withAddress(response: Response, address: Pick<FetchedBody, 'url' | 'redirected'>): Response {
  return Object.defineProperties(response, {
    url: { value: address.url },
    redirected: { value: address.redirected },
    clone: { value: () => withAddress(Response.prototype.clone.call(response), address) },
  });
}

/** Returns headers in the form that `Headers` takes. */
export function headerPairs(headers: HttpHeaders): [string, string][] {
  return Object.entries(headers).flatMap(([name, value = []]) =>
    [value].flat().map((one): [string, string] => [name, one]),
  );
}
