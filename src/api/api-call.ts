import { OAuthAppError, ofStrategy, publicName, ServiceUnavailableError } from '../errors.js';
import { apiChannel } from '../events.js';
import { TimeLimit } from '../http/deadlines.js';
import { BufferedExchange, type ExchangeKind } from '../http/exchange.js';
import { type HttpHeaders, type HttpRequest, type HttpResponse, headerValue, retryAfterMs } from '../http/message.js';
import { TransportError } from '../http/transport-error.js';
import { abortable } from '../waiting.js';
import type { Permit } from './account-limiter.js';
import type { ClientParts, Credential } from './api-context.js';
import {
  failedCall,
  isTokenInvalid,
  isTokenRefused,
  mismatch,
  noSlotError,
  refusedResponse,
  unusableResponse,
} from './api-error.js';
import {
  type Attempt,
  afterAttempt,
  type CallState,
  decideNext,
  type NextTry,
  type ResponseHead,
  START,
} from './call-decision.js';
import type { ApiResponse } from './call-options.js';
import type { CallRequest } from './call-request.js';
import { headerIn } from './request-headers.js';

/** The last headers sent with each credential, without and with the token. Nearly all requests have the same. */
const authorizedHeaders = new WeakMap<Credential, Record<'given' | 'headers', readonly string[]>>();

/** Credentials that were renewed for a body that cannot be sent again, until another such body is sent with them. */
const untried = new WeakSet<Credential>();

/** Returns the result of a call for its response. */
export type Finish<A, R> = (answer: A, request: CallRequest, attempt: Attempt) => R | Promise<R>;

/** How the responses of a call are received. */
export interface ResponseMode<A extends ResponseHead> {
  /** True if the body is held in memory, so that its size is limited. */
  readonly isBuffered: boolean;
  readonly exchange: ExchangeKind<A>;
  /** Reads the body for an error. Without it, a response of any status is a result. */
  read?(answer: A): Buffer | Promise<Buffer>;
  /** Discards a response that will not be read. */
  discard?(answer: A): void;
}

/** Responses with their complete body. */
export const BUFFERED: ResponseMode<HttpResponse> = Object.freeze({
  isBuffered: true,
  exchange: BufferedExchange,
  read: ({ body }: HttpResponse) => body,
});

/** A call with what it needs on the way. */
interface Call extends ClientParts {
  readonly request: CallRequest;
  readonly isBuffered: boolean;
  readonly limit: TimeLimit | undefined;
  /** Aborted by the caller or the limit. */
  readonly signal: AbortSignal | undefined;
}

/**
 * Makes a call in as many tries as it takes, each with a credential that is valid then. Returns what `finish` returns for the
 * response: a success (2xx, or 304 to a conditional request), or any response if the mode says so.
 *
 * @throws ApiError, ServiceUnavailableError, anything that the credential source throws, the signal's reason
 */
export async function callApi<A extends ResponseHead, R>(
  { source, context }: ClientParts,
  request: CallRequest,
  mode: ResponseMode<A>,
  finish: Finish<A, R>,
): Promise<R> {
  const { http, limiter, deadlines, tokenHeader } = context;
  const { timeoutMs } = request;
  if (tokenHeader.name !== 'authorization' && headerIn(request.headers, tokenHeader.name) !== undefined)
    throw new TypeError(`headers: ${tokenHeader.name} is set by the client; leave it out`);
  const limit = timeoutMs === undefined ? undefined : new TimeLimit(deadlines, timeoutMs, request.signal);
  const signal = limit?.signal ?? request.signal;
  const call: Call = { source, context, request, isBuffered: mode.isBuffered, limit, signal };
  let state = START;
  let answer: A | undefined;
  try {
    for (;;) {
      const startedAt = apiChannel.hasSubscribers ? performance.now() : undefined;
      let attempt: Attempt | undefined;
      let fault: unknown;
      answer = undefined;
      try {
        signal?.throwIfAborted();
        const ready = state.renewed ?? source.credential();
        // Awaited only if need be: each promise on the way costs a share of the throughput.
        const isReady = !limiter.isActive && !(ready instanceof Promise);
        attempt = isReady ? attemptWith(call, ready, state) : await attemptLater(call, ready, state);
        answer = await http.send(attempt.request, mode.exchange);
        attempt.answer = answer;
      } catch (error) {
        fault = error;
        // A request that was refused before it began has not ended by itself.
        attempt?.request.onEnd?.();
      }
      if (startedAt !== undefined && (attempt !== undefined || state.requests === 0))
        publish(call, attempt, attempt === undefined ? 0 : state.requests + 1, startedAt, fault);
      if (attempt === undefined) throw fault;
      attempt.fault = fault;
      const { permit } = attempt;
      if (answer !== undefined) {
        const { credential } = attempt;
        // A caller that repeats such a call again and again must not cause a refresh each time.
        const isRenewed =
          state.renewed !== undefined || (request.body?.isReplayable === false && untried.delete(credential));
        if (isRenewed) source.reportOutcome?.(credential, !isTokenRefused(answer));
        if (answer.status !== 429) permit?.accepted();
        if ((answer.status >= 200 && answer.status < 300) || answer.status === 304) {
          const result = finish(answer, request, attempt);
          if (!(result instanceof Promise)) return result;
          // A schema may be slow too.
          state = { ...state, sent: true };
          return await abortable(result, signal);
        }
        if (answer.status === 429) limitAccount(call, attempt);
      }
      state = afterAttempt(state, attempt);
      const next = await nextTry(call, state, attempt);
      if (next === undefined) {
        if (answer === undefined) throw fault;
        if (mode.read === undefined) return finish(answer, request, attempt);
        throw refusal(call, answer, attempt, await mode.read(answer));
      }
      if (answer !== undefined) mode.discard?.(answer);
      state = next.state;
      if (next.delayMs > 0) await context.wait(next.delayMs, signal);
    }
  } catch (error) {
    if (answer !== undefined) mode.discard?.(answer);
    request.body?.discard?.();
    throw shownError(call, error, state.sent);
  } finally {
    limit?.end();
  }
}

/** Returns the state for another try, and the wait before it; `undefined` if there is none. */
async function nextTry(call: Call, state: CallState, attempt: Attempt): Promise<NextTry | undefined> {
  const { source, context, request, limit, signal } = call;
  const at = { now: context.now(), random: context.random(), remainingMs: limit?.remainingMs ?? Infinity };
  const next = decideNext(state, attempt, request, at);
  if (next !== 'renew') return next;
  const { credential, answer } = attempt;
  const isDead = answer !== undefined && isTokenInvalid(answer);
  const renewed = await abortable(source.renew?.(credential, isDead) ?? Promise.resolve(credential), signal);
  if (renewed === credential) return undefined;
  // A body that cannot be sent again was still refused for its token: the next call has a newer one.
  attempt.isTokenRenewed = true;
  if (request.body?.isReplayable === false) {
    untried.add(renewed);
    return undefined;
  }
  return { state: { ...state, renewals: state.renewals + 1, renewed }, delayMs: 0 };
}

/** Returns the next attempt, which is not sent yet. @throws TypeError for a URL of another origin */
function attemptWith(call: Call, credential: Credential, { redirectedTo }: CallState, permit?: Permit): Attempt {
  const { limit, isBuffered } = call;
  const { bases, timeoutMs, maxResponseBytes, tokenHeader } = call.context;
  const { path, query, isWholeOrigin, method, headers, body, signal, silenceMs } = call.request;
  const base = bases.of(credential);
  const address = isWholeOrigin
    ? bases.addressOf(call.request, base, credential)
    : { origin: base.origin, path: `${base.prefix}${path}${query}` };
  let authorized = authorizedHeaders.get(credential);
  if (authorized?.given !== headers) {
    const authorization = [tokenHeader.name, tokenHeader.prefix + credential.accessToken];
    authorized = { given: headers, headers: [...authorization, ...headers] };
    authorizedHeaders.set(credential, authorized);
  }
  const request: HttpRequest = {
    origin: address.origin,
    path: redirectedTo ?? address.path,
    method,
    headers: authorized.headers,
    body: body?.create() ?? null,
    timeoutMs: limit?.remainingMs ?? silenceMs ?? timeoutMs,
    signal,
    maxBytes: isBuffered ? maxResponseBytes : Infinity,
    onEnd: permit?.release,
    timeoutCovers: limit !== undefined ? 'total' : silenceMs === undefined ? 'silence' : 'any-silence',
    bodyError: isBuffered ? undefined : (error: unknown) => shownError(call, error, true),
  };
  const isRedirected = redirectedTo !== undefined;
  const outcome = { answer: undefined, fault: undefined, isTokenRenewed: false };
  return { credential, base, isRedirected, request, permit, ...outcome };
}

/** Returns the next attempt once there is a credential for it, and a slot if its account is limited. */
async function attemptLater(call: Call, ready: Credential | Promise<Credential>, state: CallState): Promise<Attempt> {
  const { source, signal } = call;
  const { limiter } = call.context;
  const credential = ready instanceof Promise ? await abortable(ready, signal) : ready;
  const account = accountOf(call, credential);
  if (!limiter.isActive || account === undefined) return attemptWith(call, credential, state);
  const { method, path } = call.request;
  const lateError = () => noSlotError(method, path, limiter.limits.max, state.sent);
  let permit: Permit | undefined;
  try {
    permit = await limiter.acquire(account, lateError, signal);
  } catch (error) {
    throw call.limit?.expired ? lateError() : error;
  }
  try {
    // The wait may have outlived the credential.
    const current = state.renewed ?? (await abortable(Promise.resolve(source.credential()), signal));
    return attemptWith(call, current, state, permit);
  } catch (error) {
    permit?.release();
    throw error;
  }
}

/** Returns the account of a credential: its user and organization, or its grant. */
function accountOf({ source }: ClientParts, { subject, organizationDomain = '' }: Credential): string | undefined {
  return subject === undefined ? source.grantId : `${organizationDomain}/${subject}`;
}

/** Lowers the number of requests that the account may run at once, after a 429. */
function limitAccount(call: ClientParts, { credential, permit }: Attempt): void {
  const { limiter, http } = call.context;
  const account = accountOf(call, credential);
  if (permit !== undefined) permit.refused();
  else if (account !== undefined) limiter.begin(account, http.pending + 1);
}

/** Returns the error for a response that is not a success. */
function refusal({ request, context }: Call, answer: ResponseHead, attempt: Attempt, body: Buffer): unknown {
  const { status, headers } = answer;
  const { method, path } = request;
  const { data } = parseBody(body, headers);
  const details = { status, data, headers, method, path, retryAfterMs: retryAfterMs(headers, context.now()) };
  return refusedResponse(details, attempt.credential.accessToken, attempt.isTokenRenewed);
}

/** Returns what the caller sees of an error that ends the call. */
function shownError(call: Call, error: unknown, sent: boolean): unknown {
  return ofStrategy(errorOf(call, error, sent), call.context.strategyName);
}

function errorOf({ request, limit }: Call, error: unknown, sent: boolean): unknown {
  const { signal, method, path } = request;
  if (signal?.aborted && (error === signal.reason || error instanceof TransportError)) return signal.reason;
  if (error instanceof TransportError) return failedCall(error, method, path, sent);
  if (error instanceof ServiceUnavailableError) {
    if (error.sent !== undefined) return error;
    // Of a refresh: it does not know about the call.
    const { code, cause, retryAfter } = error;
    return new ServiceUnavailableError(error.message, { code, cause, retryAfter, sent });
  }
  return limit?.expired ? failedCall(new TransportError('timeout', sent), method, path, sent) : error;
}

/** Publishes the event of a try. @param attempts Requests of the call so far; 0 if it failed before any */
function publish(call: Call, attempt: Attempt | undefined, attempts: number, startedAt: number, fault: unknown): void {
  const { method, path } = call.request;
  const answer = attempt?.answer;
  let reason: string | undefined;
  if (answer !== undefined) {
    if (answer.status >= 300 && answer.status !== 304) reason = 'ERR_API';
  } else {
    const error = shownError(call, fault, true);
    if (error instanceof OAuthAppError) reason = error.code;
    else reason = error instanceof Error && error.name === 'AbortError' ? 'ERR_ABORTED' : 'ERR_UNKNOWN';
  }
  apiChannel.publish({
    ...publicName(call.context.strategyName),
    grantId: call.source.grantId,
    method,
    ...(attempt === undefined ? {} : { origin: attempt.request.origin }),
    path,
    ...(answer === undefined ? {} : { status: answer.status }),
    ...(reason === undefined ? {} : { reason }),
    attempts,
    durationMs: performance.now() - startedAt,
  });
}

const JSON_TYPE = /^(?:application|text)\/(?:[\w.-]+\+)?json$/;
const TEXT_TYPE =
  /^(?:text\/|multipart\/|application\/(?:[\w.-]+\+)?(?:xml|yaml|javascript|x-www-form-urlencoded|graphql)$)/;

/**
 * Parses the body of a response by its type: JSON as a value, text (HTML too) as a string, other types as bytes, an
 * empty body as `undefined`. Without a type: JSON if it is valid JSON, otherwise text.
 *
 * @returns `fault`: how the body differs from what its headers declare
 */
function parseBody(body: Buffer, headers: HttpHeaders): { readonly data: unknown; readonly fault?: string } {
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
export function dataOf(answer: HttpResponse, request: CallRequest, { credential }: Attempt): unknown {
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
export async function responseOf(answer: HttpResponse, request: CallRequest, attempt: Attempt): Promise<ApiResponse> {
  const { status, headers } = answer;
  return { status, headers, data: await dataOf(answer, request, attempt) };
}
