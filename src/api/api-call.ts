import { OAuthAppError, ofStrategy, ServiceUnavailableError } from '../errors.js';
import { apiChannel } from '../events.js';
import { type HttpStreamRequest, retryAfterMs } from '../http/message.js';
import { TransportError } from '../http/transport-error.js';
import { abortable } from '../waiting.js';
import type { ApiContext, Credential, CredentialSource } from './api-context.js';
import { callError, noPlaceError, refusedResponse } from './api-error.js';
import { CallLimit } from './call-limits.js';
import type { CallRequest } from './call-options.js';
import { type Attempt, afterAttempt, type Progress, START } from './call-progress.js';
import { NoPlace, type Place } from './concurrency-limiter.js';
import { addressOf, redirectTarget } from './request-target.js';
import { parseBody, type ResponseHead, type ResponseMode } from './response.js';
import { DEFAULT_RETRY, retryDelay, THROTTLED_RETRY, type TryFailure } from './retry-policy.js';

const MAX_REDIRECTS = 5;

/** Two, since the first may have brought a token that another process had got before, and that the API refuses too. */
const MAX_RENEWALS = 2;

/** The last headers of each credential, without and with it: nearly all requests have the same. */
const authorizedHeaders = new WeakMap<
  Credential,
  { readonly given: readonly string[]; readonly headers: readonly string[] }
>();

/** Makes the result of a call from its response. */
export type Finish<A, R> = (answer: A, request: CallRequest, attempt: Attempt<A>) => R | Promise<R>;

/** One call of an API client: as many tries as it takes, each with the credential that is valid then. */
export class ApiCall<A extends ResponseHead> {
  readonly #source: CredentialSource;
  readonly #context: ApiContext;
  readonly #request: CallRequest;
  readonly #mode: ResponseMode<A>;
  readonly #limit: CallLimit | undefined;
  readonly #signal: AbortSignal | undefined;

  constructor(source: CredentialSource, context: ApiContext, request: CallRequest, mode: ResponseMode<A>) {
    const { timeoutMs, signal } = request;
    this.#source = source;
    this.#context = context;
    this.#request = request;
    this.#mode = mode;
    this.#limit = timeoutMs === undefined ? undefined : new CallLimit(context.deadlines, timeoutMs, signal);
    this.#signal = this.#limit?.signal ?? signal;
  }

  /**
   * Makes the call and returns what `finish` returns for the response: a success (2xx, or 304 to a conditional request),
   * or any response if the mode says so.
   *
   * @throws ApiError, ServiceUnavailableError, anything that the credential source throws, the signal's reason
   */
  async run<R>(finish: Finish<A, R>): Promise<R> {
    const { http, limiter } = this.#context;
    let progress = START;
    try {
      for (;;) {
        const startedAt = apiChannel.hasSubscribers ? performance.now() : undefined;
        let attempt: Attempt<A> | undefined;
        let fault: unknown;
        try {
          this.#signal?.throwIfAborted();
          const ready = progress.renewed ?? this.#source.credential();
          // Awaited only if need be: each promise on the way costs a share of the throughput.
          const isReady = !limiter.isActive && !(ready instanceof Promise);
          attempt = isReady ? this.#attempt(ready, progress) : await this.#attemptLater(ready, progress);
          attempt.answer = await http.send(attempt.request, this.#mode.exchange);
        } catch (error) {
          fault = error;
          // Of a request that was refused before it began.
          attempt?.request.onEnd?.();
        }
        if (startedAt !== undefined && (attempt !== undefined || progress.requests === 0)) {
          this.#publish(attempt === undefined ? 0 : progress.requests + 1, startedAt, attempt?.answer, fault);
        }
        if (attempt === undefined) throw fault;
        const { answer } = attempt;
        if (progress.renewed !== undefined && answer !== undefined) {
          this.#source.reportOutcome?.(progress.renewed, answer.status !== 401);
        }
        if (answer !== undefined && (attempt.place || answer.status === 429)) this.#learn(answer.status, attempt);
        if (answer !== undefined && ((answer.status >= 200 && answer.status < 300) || answer.status === 304)) {
          const result = finish(answer, this.#request, attempt);
          if (!(result instanceof Promise)) return result;
          // A schema may take its time too.
          progress = { ...progress, sent: true };
          return await abortable(result, this.#signal);
        }
        attempt.fault = fault;
        progress = afterAttempt(progress, attempt);
        const next = await this.#next(progress, attempt);
        if (answer !== undefined && next === undefined) return finish(answer, this.#request, attempt);
        if (answer !== undefined) this.#mode.discard(answer);
        progress = next ?? progress;
      }
    } catch (error) {
      this.#request.body?.discard?.();
      throw this.#seen(error, progress.sent);
    } finally {
      this.#limit?.end();
    }
  }

  /** Returns the next attempt, not sent yet. @throws TypeError for a URL of another origin */
  #attempt(credential: Credential, { redirectedTo }: Progress, place?: Place): Attempt<A> {
    const { bases, timeoutMs, maxResponseBytes } = this.#context;
    const { method, headers, body, signal, silenceMs } = this.#request;
    const { isBuffered } = this.#mode;
    const { base, origin, path: asked } = addressOf(bases, this.#request, credential.organizationDomain);
    const path = redirectedTo ?? asked;
    let authorized = authorizedHeaders.get(credential);
    if (authorized?.given !== headers) {
      authorized = { given: headers, headers: ['authorization', `Bearer ${credential.accessToken}`, ...headers] };
      authorizedHeaders.set(credential, authorized);
    }
    const request: HttpStreamRequest = {
      origin,
      path,
      method,
      headers: authorized.headers,
      body: body?.create() ?? null,
      timeoutMs: this.#limit?.remainingMs ?? silenceMs ?? timeoutMs,
      signal,
      maxBytes: isBuffered ? maxResponseBytes : Infinity,
      onEnd: place?.release,
      timeoutCovers: this.#limit !== undefined ? 'total' : silenceMs === undefined ? 'silence' : 'any-silence',
      bodyError: isBuffered ? undefined : (error: unknown) => this.#seen(error, true),
    };
    const isRedirected = redirectedTo !== undefined;
    return { credential, base, path, isRedirected, request, place, answer: undefined, fault: undefined };
  }

  /** Returns the next attempt once there are a credential and a place for it. */
  async #attemptLater(ready: Credential | Promise<Credential>, progress: Progress): Promise<Attempt<A>> {
    const credential = ready instanceof Promise ? await abortable(ready, this.#signal) : ready;
    const place = await this.#place(credential, progress);
    if (place === undefined) return this.#attempt(credential, progress);
    try {
      // The wait may have outlived the credential.
      const current = progress.renewed ?? (await abortable(Promise.resolve(this.#source.credential()), this.#signal));
      return this.#attempt(current, progress, place);
    } catch (error) {
      place.release();
      throw error;
    }
  }

  /** Waits for a place among the requests of the account, if these are limited. */
  async #place(credential: Credential, { sent }: Progress): Promise<Place | undefined> {
    const { limiter } = this.#context;
    const account = this.#accountOf(credential);
    if (!limiter.isActive || account === undefined) return undefined;
    try {
      return await limiter.acquire(account, this.#signal);
    } catch (error) {
      if (!(error instanceof NoPlace) && !this.#limit?.expired) throw error;
      throw noPlaceError(this.#request.method, this.#request.path, limiter.max, sent);
    }
  }

  /** Returns the account of a credential: the user and organization, or else the grant. */
  #accountOf({ subject, organizationDomain = '' }: Credential): string | undefined {
    return subject === undefined ? this.#source.grantId : `${organizationDomain}/${subject}`;
  }

  /** Returns the state for another try, after the wait for it; `undefined` if the response is the result. Otherwise throws. */
  async #next(progress: Progress, attempt: Attempt<A>): Promise<Progress | undefined> {
    const { method } = this.#request;
    const { answer, base, path, fault } = attempt;
    if (answer === undefined) {
      const next = fault instanceof TransportError ? await this.#retry(progress, fault) : undefined;
      if (next === undefined) throw fault;
      return next;
    }
    const { status, headers } = answer;
    let state = progress;
    if (status === 401 && progress.renewals < MAX_RENEWALS) {
      state = await this.#renew(progress, attempt, answer);
      if (state.renewed !== undefined) return state;
    }
    const target = redirectTarget(this.#request, answer, { origin: attempt.request.origin, prefix: base.prefix }, path);
    if (target !== undefined && progress.redirects < MAX_REDIRECTS) {
      return { ...state, redirects: progress.redirects + 1, redirectedTo: target };
    }
    const askedMs = retryAfterMs(headers, this.#context.now());
    const next = await this.#retry(state, { status, retryAfterMs: askedMs });
    if (next !== undefined || this.#mode.read === undefined) return next;
    const { data } = parseBody(await this.#mode.read(answer), headers);
    throw refusedResponse({
      status,
      data,
      headers,
      method,
      path: this.#request.path,
      retryAfterMs: askedMs,
      accessToken: attempt.credential.accessToken,
      isTokenRenewed: state.isRenewedInVain,
    });
  }

  /** Adapts how many requests of the account run at once to what the service takes. */
  #learn(status: number, { credential, place }: Attempt<A>): void {
    const { limiter, http } = this.#context;
    const account = place === undefined && status === 429 ? this.#accountOf(credential) : undefined;
    if (account !== undefined) limiter.begin(account, http.pending + 1);
    else if (status === 429) place?.refused();
    else place?.accepted();
  }

  /** Returns the state with a newer credential, if there is one and the request can be sent again. */
  async #renew(progress: Progress, { credential }: Attempt<A>, answer: A): Promise<Progress> {
    const state = { ...progress, renewals: progress.renewals + 1 };
    if (this.#source.renew === undefined) return state;
    try {
      const renewed = await abortable(this.#source.renew(credential), this.#signal);
      if (renewed === credential) return state;
      // A body that cannot be sent again was still refused for its token: the next call has a newer one.
      return this.#isReplayable ? { ...state, renewed } : { ...state, isRenewedInVain: true };
    } catch (error) {
      this.#mode.discard(answer);
      throw error;
    }
  }

  async #retry(progress: Progress, failure: TryFailure): Promise<Progress | undefined> {
    const { method, retry } = this.#request;
    const failures = progress.failures + 1;
    const { waitedMs, throttledMs } = progress;
    const remainingMs = this.#limit?.remainingMs ?? Infinity;
    const failed = { method, isReplayable: this.#isReplayable, failures, waitedMs, remainingMs, failure };
    if (retry === DEFAULT_RETRY && 'status' in failure && failure.status === 429) {
      const throttles = progress.throttles + 1;
      const limits =
        this.#limit === undefined
          ? THROTTLED_RETRY
          : { ...THROTTLED_RETRY, maxTotalMs: Infinity, maxDelayMs: Infinity };
      const delayMs = retryDelay(
        { ...failed, failures: throttles, waitedMs: throttledMs },
        limits,
        this.#context.random(),
      );
      if (delayMs === undefined) return undefined;
      await this.#context.wait(delayMs, this.#signal);
      return { ...progress, throttles, throttledMs: throttledMs + delayMs };
    }
    const delayMs = retryDelay(failed, retry, this.#context.random());
    if (delayMs === undefined) return undefined;
    await this.#context.wait(delayMs, this.#signal);
    return { ...progress, failures, waitedMs: waitedMs + delayMs };
  }

  get #isReplayable(): boolean {
    return this.#request.body?.isReplayable !== false;
  }

  /** Returns what the caller sees of an error that ends the call. */
  #seen(error: unknown, sent: boolean): unknown {
    return ofStrategy(this.#errorOf(error, sent), this.#context.strategyName);
  }

  #errorOf(error: unknown, sent: boolean): unknown {
    const { signal, method, path } = this.#request;
    if (signal?.aborted && (error === signal.reason || error instanceof TransportError)) return signal.reason;
    if (error instanceof TransportError) return callError(error, method, path, sent);
    if (error instanceof ServiceUnavailableError) {
      if (error.sent !== undefined) return error;
      // Of a refresh: it does not know about the call.
      const { code, cause, retryAfter } = error;
      return new ServiceUnavailableError(error.message, { code, cause, retryAfter, sent });
    }
    return this.#limit?.expired ? callError(new TransportError('timeout', sent), method, path, sent) : error;
  }

  /** Publishes the event of a try. @param attempts Requests of the call so far; 0 if it failed before any */
  #publish(attempts: number, startedAt: number, answer: A | undefined, fault: unknown): void {
    const { method, path } = this.#request;
    let reason: string | undefined;
    if (answer !== undefined) {
      if (answer.status >= 300 && answer.status !== 304) reason = 'ERR_API';
    } else {
      const error = this.#seen(fault, true);
      if (error instanceof OAuthAppError) reason = error.code;
      else reason = error instanceof Error && error.name === 'AbortError' ? 'ERR_ABORTED' : 'ERR_UNKNOWN';
    }
    apiChannel.publish({
      strategy: this.#context.strategyName,
      grantId: this.#source.grantId,
      method,
      path,
      ...(answer === undefined ? {} : { status: answer.status }),
      ...(reason === undefined ? {} : { reason }),
      attempts,
      durationMs: performance.now() - startedAt,
    });
  }
}
