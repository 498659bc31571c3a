import { OAuthAppError, ofStrategy, publicName, ServiceUnavailableError } from '../errors.js';
import { apiChannel } from '../events.js';
import { TimeLimit } from '../http/deadlines.js';
import { BufferedExchange, type ExchangeKind } from '../http/exchange.js';
import { type HttpHeaders, type HttpRequest, type HttpResponse, headerValue, retryAfterMs } from '../http/message.js';
import { TransportError } from '../http/transport-error.js';
import { abortable } from '../waiting.js';
import type { Permit } from './account-limiter.js';
import type { ApiContext, ClientParts, Credential, CredentialSource } from './api-context.js';
import {
  failedCall,
  isTokenInvalid,
  isTokenRefused,
  mismatch,
  noSlotError,
  refusedResponse,
  unusableResponse,
} from './api-error.js';
import { type Attempt, afterAttempt, type CallState, decideNext, isReplayable, START } from './call-decision.js';
import type { ApiResponse, CallRequest } from './call-options.js';
import { headerIn } from './request-headers.js';

/** The last headers sent with each credential, without and with the token. Nearly all requests have the same. */
const authorizedHeaders = new WeakMap<Credential, Record<'given' | 'headers', readonly string[]>>();

/** Returns the result of a call for its response. */
export type Finish<A, R> = (answer: A, request: CallRequest, attempt: Attempt<A>) => R | Promise<R>;

/** Makes one call of an API client, in as many tries as it takes. Each has a credential that is valid then. */
export class ApiCall<A extends ResponseHead> {
  readonly #source: CredentialSource;
  readonly #context: ApiContext;
  readonly #request: CallRequest;
  readonly #mode: ResponseMode<A>;
  readonly #limit: TimeLimit | undefined;
  readonly #signal: AbortSignal | undefined;

  constructor({ source, context }: ClientParts, request: CallRequest, mode: ResponseMode<A>) {
    const { timeoutMs, signal } = request;
    const { name } = context.tokenHeader;
    if (name !== 'authorization' && headerIn(request.headers, name) !== undefined)
      throw new TypeError(`headers: ${name} is set by the client; leave it out`);
    this.#source = source;
    this.#context = context;
    this.#request = request;
    this.#mode = mode;
    this.#limit = timeoutMs === undefined ? undefined : new TimeLimit(context.deadlines, timeoutMs, signal);
    this.#signal = this.#limit?.signal ?? signal;
  }

  /**
   * Makes the call and returns what `finish` returns for the response: a success (2xx, or 304 to a conditional request), or
   * any response if the mode says so.
   *
   * @throws ApiError, ServiceUnavailableError, anything that the credential source throws, the signal's reason
   */
  async run<R>(finish: Finish<A, R>): Promise<R> {
    const { http, limiter } = this.#context;
    let state = START;
    try {
      for (;;) {
        const startedAt = apiChannel.hasSubscribers ? performance.now() : undefined;
        let attempt: Attempt<A> | undefined;
        let fault: unknown;
        try {
          this.#signal?.throwIfAborted();
          const ready = state.renewed ?? this.#source.credential();
          // Awaited only if need be: each promise on the way costs a share of the throughput.
          const isReady = !limiter.isActive && !(ready instanceof Promise);
          attempt = isReady ? this.#attempt(ready, state) : await this.#attemptLater(ready, state);
          attempt.answer = await http.send(attempt.request, this.#mode.exchange);
        } catch (error) {
          fault = error;
          // A request that was refused before it began has not ended by itself.
          attempt?.request.onEnd?.();
        }
        if (startedAt !== undefined && (attempt !== undefined || state.requests === 0))
          this.#publish(attempt, attempt === undefined ? 0 : state.requests + 1, startedAt, fault);
        if (attempt === undefined) throw fault;
        attempt.fault = fault;
        const { answer, permit } = attempt;
        if (answer !== undefined) {
          if (state.renewed !== undefined) this.#source.reportOutcome?.(state.renewed, !isTokenRefused(answer));
          if (answer.status !== 429) permit?.accepted();
          if ((answer.status >= 200 && answer.status < 300) || answer.status === 304) {
            const result = finish(answer, this.#request, attempt);
            if (!(result instanceof Promise)) return result;
            // A schema may be slow too.
            state = { ...state, sent: true };
            return await abortable(result, this.#signal);
          }
          if (answer.status === 429) this.#limitAccount(attempt);
        }
        state = afterAttempt(state, attempt);
        const next = await this.#next(state, attempt);
        if (next !== undefined) state = next;
        else if (answer === undefined) throw fault;
        else if (this.#mode.read === undefined) return finish(answer, this.#request, attempt);
        else throw this.#refusal(answer, attempt, await this.#mode.read(answer));
      }
    } catch (error) {
      this.#request.body?.discard?.();
      throw this.#seen(error, state.sent);
    } finally {
      this.#limit?.end();
    }
  }

  /** Returns the state for another try, after the wait for it; `undefined` if there is none. */
  async #next(state: CallState, attempt: Attempt<A>): Promise<CallState | undefined> {
    const { now, random, wait } = this.#context;
    const remainingMs = this.#limit?.remainingMs ?? Infinity;
    const decision = decideNext(state, attempt, this.#request, { now: now(), random: random(), remainingMs });
    if (decision.next === 'end') return undefined;
    if (decision.next === 'renew') return await this.#renew(state, attempt);
    this.#drop(attempt);
    if (decision.delayMs > 0) await wait(decision.delayMs, this.#signal);
    return decision.state;
  }

  /** Returns the state with a newer credential; `undefined` if there is none, or the request cannot be sent again. */
  async #renew(state: CallState, attempt: Attempt<A>): Promise<CallState | undefined> {
    const { credential, answer } = attempt;
    const isDead = answer !== undefined && isTokenInvalid(answer);
    let renewed: Credential;
    try {
      renewed = await abortable(this.#source.renew?.(credential, isDead) ?? Promise.resolve(credential), this.#signal);
    } catch (error) {
      this.#drop(attempt);
      throw error;
    }
    if (renewed === credential) return undefined;
    // A body that cannot be sent again was still refused for its token: the next call has a newer one.
    attempt.isTokenRenewed = true;
    if (!isReplayable(this.#request)) return undefined;
    this.#drop(attempt);
    return { ...state, renewals: state.renewals + 1, renewed };
  }

  /** Discards a response that another one replaces. */
  #drop({ answer }: Attempt<A>): void {
    if (answer !== undefined) this.#mode.discard?.(answer);
  }

  /** Returns the next attempt, which is not sent yet. @throws TypeError for a URL of another origin */
  #attempt(credential: Credential, { redirectedTo }: CallState, permit?: Permit): Attempt<A> {
    const { bases, timeoutMs, maxResponseBytes, tokenHeader } = this.#context;
    const { method, headers, body, signal, silenceMs } = this.#request;
    const { isBuffered } = this.#mode;
    const { base, origin, path: asked } = bases.addressOf(this.#request, credential);
    const path = redirectedTo ?? asked;
    let authorized = authorizedHeaders.get(credential);
    if (authorized?.given !== headers) {
      const authorization = [tokenHeader.name, tokenHeader.prefix + credential.accessToken];
      authorized = { given: headers, headers: [...authorization, ...headers] };
      authorizedHeaders.set(credential, authorized);
    }
    const request: HttpRequest = {
      origin,
      path,
      method,
      headers: authorized.headers,
      body: body?.create() ?? null,
      timeoutMs: this.#limit?.remainingMs ?? silenceMs ?? timeoutMs,
      signal,
      maxBytes: isBuffered ? maxResponseBytes : Infinity,
      onEnd: permit?.release,
      timeoutCovers: this.#limit !== undefined ? 'total' : silenceMs === undefined ? 'silence' : 'any-silence',
      bodyError: isBuffered ? undefined : (error: unknown) => this.#seen(error, true),
    };
    const isRedirected = redirectedTo !== undefined;
    const outcome = { answer: undefined, fault: undefined, isTokenRenewed: false };
    return { credential, base, path, isRedirected, request, permit, ...outcome };
  }

  /** Returns the next attempt once there is a credential for it, and a slot if its account is limited. */
  async #attemptLater(ready: Credential | Promise<Credential>, state: CallState): Promise<Attempt<A>> {
    const credential = ready instanceof Promise ? await abortable(ready, this.#signal) : ready;
    const { limiter } = this.#context;
    const account = this.#accountOf(credential);
    if (!limiter.isActive || account === undefined) return this.#attempt(credential, state);
    const { method, path } = this.#request;
    const lateError = () => noSlotError(method, path, limiter.limits.max, state.sent);
    let permit: Permit | undefined;
    try {
      permit = await limiter.acquire(account, lateError, this.#signal);
    } catch (error) {
      throw this.#limit?.expired ? lateError() : error;
    }
    try {
      // The wait may have outlived the credential.
      const current = state.renewed ?? (await abortable(Promise.resolve(this.#source.credential()), this.#signal));
      return this.#attempt(current, state, permit);
    } catch (error) {
      permit?.release();
      throw error;
    }
  }

  /** Returns the account of a credential: its user and organization, or its grant. */
  #accountOf({ subject, organizationDomain = '' }: Credential): string | undefined {
    return subject === undefined ? this.#source.grantId : `${organizationDomain}/${subject}`;
  }

  /** Lowers the number of requests that the account may run at once, after a 429. */
  #limitAccount({ credential, permit }: Attempt<A>): void {
    const { limiter, http } = this.#context;
    const account = this.#accountOf(credential);
    if (permit !== undefined) permit.refused();
    else if (account !== undefined) limiter.begin(account, http.pending + 1);
  }

  /** Returns the error for a response that is not a success. */
  #refusal({ status, headers }: A, { credential, isTokenRenewed }: Attempt<A>, body: Buffer): unknown {
    const { method, path } = this.#request;
    const { data } = parseBody(body, headers);
    const details = { status, data, headers, method, path, retryAfterMs: retryAfterMs(headers, this.#context.now()) };
    return refusedResponse(details, credential.accessToken, isTokenRenewed);
  }

  /** Returns what the caller sees of an error that ends the call. */
  #seen(error: unknown, sent: boolean): unknown {
    return ofStrategy(this.#errorOf(error, sent), this.#context.strategyName);
  }

  #errorOf(error: unknown, sent: boolean): unknown {
    const { signal, method, path } = this.#request;
    if (signal?.aborted && (error === signal.reason || error instanceof TransportError)) return signal.reason;
    if (error instanceof TransportError) return failedCall(error, method, path, sent);
    if (error instanceof ServiceUnavailableError) {
      if (error.sent !== undefined) return error;
      // Of a refresh: it does not know about the call.
      const { code, cause, retryAfter } = error;
      return new ServiceUnavailableError(error.message, { code, cause, retryAfter, sent });
    }
    return this.#limit?.expired ? failedCall(new TransportError('timeout', sent), method, path, sent) : error;
  }

  /** Publishes the event of a try. @param attempts Requests of the call so far; 0 if it failed before any */
  #publish(attempt: Attempt<A> | undefined, attempts: number, startedAt: number, fault: unknown): void {
    const { method, path } = this.#request;
    const answer = attempt?.answer;
    let reason: string | undefined;
    if (answer !== undefined) {
      if (answer.status >= 300 && answer.status !== 304) reason = 'ERR_API';
    } else {
      const error = this.#seen(fault, true);
      if (error instanceof OAuthAppError) reason = error.code;
      else reason = error instanceof Error && error.name === 'AbortError' ? 'ERR_ABORTED' : 'ERR_UNKNOWN';
    }
    apiChannel.publish({
      ...publicName(this.#context.strategyName),
      grantId: this.#source.grantId,
      method,
      ...(attempt === undefined ? {} : { origin: attempt.request.origin }),
      path,
      ...(answer === undefined ? {} : { status: answer.status }),
      ...(reason === undefined ? {} : { reason }),
      attempts,
      durationMs: performance.now() - startedAt,
    });
  }
}

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
