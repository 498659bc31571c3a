import { BufferedExchange, type ExchangeKind } from '../http/exchange.js';
import { type HttpHeaders, type HttpResponse, headerValue } from '../http/message.js';
import { mismatch, unusableResponse } from './api-error.js';
import type { Attempt } from './call-decision.js';
import type { ApiResponse, CallRequest } from './call-options.js';

/** The part of a response that is there in every {@link ResponseMode}. */
export type ResponseHead = Pick<HttpResponse, 'status' | 'headers'>;

/** How the responses of a call are received. */
export interface ResponseMode<A extends ResponseHead> {
  /** True if the body is held in memory, so that its size is limited. */
  readonly isBuffered: boolean;
  readonly exchange: ExchangeKind<A>;
  /** Reads the body for an error. Without it, a response of any status is a result. */
  read?(answer: A): Promise<Buffer>;
  /** Discards a response that will not be read. */
  discard?(answer: A): void;
}

/** Responses with their complete body. */
export const BUFFERED: ResponseMode<HttpResponse> = Object.freeze({
  isBuffered: true,
  exchange: BufferedExchange,
  read: ({ body }: HttpResponse) => Promise.resolve(body),
});

const JSON_TYPE = /^(?:application|text)\/(?:[\w.-]+\+)?json$/;
const TEXT_TYPE =
  /^(?:text\/|multipart\/|application\/(?:[\w.-]+\+)?(?:xml|yaml|javascript|x-www-form-urlencoded|graphql)$)/;

/**
 * Parses the body of a response by its type: JSON as a value, text (HTML too) as a string, other types as bytes, an
 * empty body as `undefined`. Without a type: JSON if it is valid JSON, otherwise text.
 *
 * @returns `fault`: how the body differs from what its headers declare
 */
export function parseBody(body: Buffer, headers: HttpHeaders): { readonly data: unknown; readonly fault?: string } {
  if (body.length === 0) return { data: undefined };
  // Still there if it could not be decoded.
  const encoding = headers['content-encoding'] && headerValue(headers, 'content-encoding');
  if (encoding !== undefined && !/^(?:identity)?$/i.test(encoding.trim())) {
    return { data: body, fault: 'its content encoding is unknown, or a chain of several' };
  }
  // Most responses need no more. Of other types, parameters are left out.
  const type =
    headers['content-type'] === 'application/json'
      ? 'application/json'
      : (headerValue(headers, 'content-type')?.split(';', 1)[0] ?? '').trim().toLowerCase();
  const isJson = type === '' || JSON_TYPE.test(type);
  if (!isJson && !TEXT_TYPE.test(type)) return { data: body };
  const decoded = body.toString('utf8');
  // Some services send a byte order mark.
  const text = decoded.charCodeAt(0) === 0xfeff ? decoded.slice(1) : decoded;
  if (!isJson) return { data: text };
  try {
    return { data: JSON.parse(text) };
  } catch {
    const fault = 'its content type declares JSON, and it is not valid JSON';
    return type === '' ? { data: text } : { data: text, fault };
  }
}

/** Returns the data of a response, validated if the call has a schema. */
export function dataOf(answer: HttpResponse, request: CallRequest, { credential }: Attempt<HttpResponse>): unknown {
  const { data, fault } = parseBody(answer.body, answer.bodyHeaders ?? answer.headers);
  const { method, path, schema } = request;
  if (fault !== undefined) {
    throw unusableResponse(`the body cannot be used: ${fault}.`, { data, headers: answer.headers, method, path });
  }
  // A 304 says that the caller has the body already.
  if (schema === undefined || answer.status === 304) return data;
  return Promise.resolve(schema['~standard'].validate(data)).then((result) => {
    if (result.issues === undefined) return result.value;
    throw mismatch(result.issues, credential.accessToken, { data, headers: answer.headers, method, path });
  });
}

/** Returns a response with its data. */
export async function responseOf(
  answer: HttpResponse,
  request: CallRequest,
  attempt: Attempt<HttpResponse>,
): Promise<ApiResponse> {
  const { status, headers } = answer;
  return { status, headers, data: await dataOf(answer, request, attempt) };
}
