import { type HttpHeaders, headerValue } from '../http/message.js';

/** What a body says, or that it claims to be JSON and is not. */
export type ParsedBody = { readonly data: unknown; readonly broken: boolean };

const NOTHING: ParsedBody = Object.freeze({ data: undefined, broken: false });

const JSON_TYPE = /^(?:application|text)\/(?:[\w.-]+\+)?json$/;
const TEXT_TYPE =
  /^(?:text\/|multipart\/|application\/(?:[\w.-]+\+)?(?:xml|yaml|javascript|x-www-form-urlencoded|graphql)$)/;

/**
 * The body of an answer as data: parsed where its type is JSON, text where it is text (HTML among it), bytes for
 * other types, `undefined` where it is empty. Without a type: parsed if it is JSON, else text.
 */
export function parseBody(body: Buffer, headers: HttpHeaders): ParsedBody {
  if (body.length === 0) return NOTHING;
  const type = mediaType(headers);
  if (JSON_TYPE.test(type)) return parseJson(body);
  if (type === '') return { ...parseJson(body), broken: false };
  return { data: TEXT_TYPE.test(type) ? textOf(body) : body, broken: false };
}

function mediaType(headers: HttpHeaders): string {
  const value = headerValue(headers, 'content-type');
  // By far the most frequent one, exactly so.
  if (value === undefined || value === 'application/json') return value ?? '';
  return (value.split(';', 1)[0] ?? '').trim().toLowerCase();
}

function parseJson(body: Buffer): ParsedBody {
  const text = textOf(body);
  try {
    return { data: JSON.parse(text), broken: false };
  } catch {
    return { data: text, broken: true };
  }
}

/** UTF-8, without the mark that some services put before it. */
function textOf(body: Buffer): string {
  const text = body.toString('utf8');
  return text.charCodeAt(0) === 0xfeff ? text.slice(1) : text;
}
