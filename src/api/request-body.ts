import { Readable } from 'node:stream';
import type { HttpRequest } from '../http/message.js';
import { encodeForm, type FormDataLike, isFormData } from './form-body.js';

/** A body as the caller gives it, beside `json`. */
export type RequestBodyInit = string | Uint8Array | Readable | FormDataLike;

/** A body ready to be sent. */
export interface RequestBody {
  /**
   * What to send; to be called once for each try.
   *
   * @throws the error of a stream that broke before it could be sent
   */
  create(): HttpRequest['body'];
  /** Lets go of a stream that will not be sent any more, or no further. */
  discard?(): void;
  /** Whether it can be sent more than once. */
  readonly replayable: boolean;
  /** Default for `Content-Type`. */
  readonly contentType: string | undefined;
  /** Where it is known and `create` gives a stream. */
  readonly contentLength?: number;
}

/**
 * The body of a request, from the options `json` and `body`.
 *
 * @throws TypeError for both at once, for a value that JSON has no form for, and for a body of another kind
 */
export function requestBody(options: { readonly json?: unknown; readonly body?: unknown }): RequestBody | undefined {
  const { json, body } = options;
  if (json === undefined) return body === undefined ? undefined : givenBody(body);
  if (body !== undefined) throw new TypeError('json and body: give one of them');
  const text: string | undefined = JSON.stringify(json);
  if (text === undefined) throw new TypeError(`json: a ${typeof json} has no form in JSON`);
  return sameBody(text, 'application/json');
}

function givenBody(body: unknown): RequestBody {
  if (typeof body === 'string' || body instanceof Uint8Array) return sameBody(body, undefined);
  if (body instanceof Readable) return streamBody(body);
  if (isFormData(body)) return encodeForm(body);
  throw new TypeError('body: expected a string, Buffer, Uint8Array, Readable or FormData');
}

function sameBody(body: string | Uint8Array, contentType: string | undefined): RequestBody {
  return { create: () => body, replayable: true, contentType };
}

function streamBody(body: Readable): RequestBody {
  // It may break while the call waits for a token or a place, when nobody else listens; that would end the process.
  body.on('error', () => {});
  return {
    create: () => {
      if (body.errored) throw body.errored;
      return body;
    },
    discard: () => {
      body.destroy();
    },
    replayable: false,
    contentType: undefined,
  };
}
