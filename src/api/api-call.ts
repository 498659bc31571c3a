import { ServiceUnavailableError } from '../errors.js';
import { type HttpRequest, headerValue } from '../http/message.js';
import { parseRetryAfter } from '../http/retry-after.js';
import { TransportError } from '../http/transport-error.js';
import { abortable } from './abortable.js';
import type { Answer, ResponseMode } from './answer-kind.js';
import type { ApiBase } from './api-base.js';
import type { ApiError } from './api-error.js';
import type { CallContext } from './call-context.js';
import { callError } from './call-error.js';
import { CallLimit } from './call-limits.js';
import type { CallRequest } from './call-options.js';
import type { Credential, CredentialSource } from './credential.js';
import { refusedAnswer } from './error-message.js';
import { redirectTarget } from './redirect.js';
import { authorizedHeaders } from './request-headers.js';
import { parseBody } from './response.js';
import { retryDelay, type TryFailure } from './retry-policy.js';

const MAX_REDIRECTS = 5;

/** The last request that was sent. */
interface Sent {
  readonly credential: Credential;
  readonly base: ApiBase;
  readonly path: string;
}

/** One call of an API client: as many tries as it takes, each with the credential that is current then. */
export class ApiCall<A extends Answer> {
  /** Requests sent so far. */
  attempts = 0;
  /** Of the last answer. */
  status: number | undefined;
  readonly #source: CredentialSource;
  readonly #context: CallContext;
  readonly #request: CallRequest;
  readonly #kind: ResponseMode<A>;
  readonly #limit: CallLimit | undefined;
  readonly #signal: AbortSignal | undefined;
  #sent: Sent | undefined;
  /** What `renew` gave, until an answer tells whether the API takes it. */
  #renewed: Credential | undefined;
  #mayRenew = true;
  #redirectedTo: string | undefined;
  #redirects = 0;
  #failures = 0;
  #waitedMs = 0;

  constructor(source: CredentialSource, context: CallContext, request: CallRequest, kind: ResponseMode<A>) {
    const { timeoutMs, signal } = request;
    this.#source = source;
    this.#context = context;
    this.#request = request;
    this.#kind = kind;
    this.#limit = timeoutMs === undefined ? undefined : new CallLimit(context.deadlines, timeoutMs, signal);
    this.#signal = this.#limit?.signal ?? signal;
  }

  /**
   * The answer, if it is a success (2xx, or 304 to a conditional request).
   *
   * @throws ApiError, ServiceUnavailableError, whatever the credential source throws, the signal's reason
   */
  async run(): Promise<A> {
    try {
      this.#signal?.throwIfAborted();
      for (;;) {
        let answer: A;
        try {
          answer = await this.#exchange();
        } catch (fault) {
          await this.#recover(fault);
          continue;
        }
        this.#note(answer.status);
        if ((answer.status >= 200 && answer.status < 300) || answer.status === 304) return answer;
        await this.#follow(answer);
      }
    } catch (error) {
      this.#request.body?.discard?.();
      throw this.#asSeen(error);
    } finally {
      this.#limit?.end();
    }
  }

  // Synchronous as far as can be, here and below: every promise on the way costs a share of the throughput.
  #exchange(): Promise<A> {
    const { limiter } = this.#context;
    const key = this.#source.grantId;
    // Without a grant there is no credential, and nothing is sent.
    if (limiter === undefined || key === undefined) return this.#send();
    const place = limiter.acquire(key, this.#signal);
    return place === undefined ? this.#sendAndRelease(key) : place.then(() => this.#sendAndRelease(key));
  }

  async #sendAndRelease(key: string): Promise<A> {
    const { limiter } = this.#context;
    try {
      const answer = await this.#send();
      this.#kind.whenDone(answer, () => limiter?.release(key));
      return answer;
    } catch (error) {
      limiter?.release(key);
      throw error;
    }
  }

  #send(): Promise<A> {
    const credential = this.#renewed ?? this.#source.credential();
    if (!(credential instanceof Promise)) return this.#sendWith(credential);
    return abortable(credential, this.#signal).then((ready) => this.#sendWith(ready));
  }

  #sendWith(credential: Credential): Promise<A> {
    const { bases, http } = this.#context;
    const base = bases.of(credential.organizationDomain);
    const path = this.#redirectedTo ?? `${base.prefix}${this.#request.path}${this.#request.query}`;
    this.#sent = { credential, base, path };
    this.attempts++;
    return this.#kind.send(http, this.#httpRequest(this.#sent), {
      timeoutCovers: this.#limit === undefined ? 'silence' : 'total',
      bodyError: (error) => this.#asSeen(error),
    });
  }

  #httpRequest({ credential, base, path }: Sent): HttpRequest {
    const { method, headers, body, signal, streamed } = this.#request;
    return {
      origin: base.origin,
      path,
      method,
      headers: authorizedHeaders(credential, headers),
      body: body?.create() ?? null,
      timeoutMs: this.#limit?.remainingMs ?? this.#context.timeoutMs,
      signal,
      maxBytes: streamed ? Infinity : this.#context.maxBytes,
    };
  }

  #note(status: number): void {
    this.status = status;
    if (this.#renewed === undefined) return;
    this.#source.reportOutcome(this.#renewed, status !== 401);
    this.#renewed = undefined;
  }

  /** Waits for another try, or throws. */
  async #recover(fault: unknown): Promise<void> {
    if (!(fault instanceof TransportError)) throw fault;
    const delayMs = this.#retryDelay(fault);
    if (delayMs === undefined) throw fault;
    await this.#pause(delayMs);
  }

  /** Sees to it that another try makes sense, or throws. */
  async #follow(answer: A): Promise<void> {
    if (answer.status === 401 && (await this.#renew(answer))) return this.#kind.discard(answer);
    if (this.#redirect(answer)) return this.#kind.discard(answer);
    const asked = parseRetryAfter(headerValue(answer.headers, 'retry-after'), this.#context.now());
    const delayMs = this.#retryDelay({ status: answer.status, retryAfterMs: asked });
    if (delayMs === undefined) throw await this.#refusal(answer, asked);
    this.#kind.discard(answer);
    await this.#pause(delayMs);
  }

  async #renew(answer: A): Promise<boolean> {
    const refused = this.#sent?.credential;
    if (refused === undefined || !this.#mayRenew) return false;
    this.#mayRenew = false;
    try {
      const renewed = await abortable(this.#source.renew(refused), this.#signal);
      // A body that cannot be sent again has still been refused for its token: the next call has a newer one.
      if (renewed === refused || !this.#isReplayable) return false;
      this.#renewed = renewed;
      return true;
    } catch (error) {
      this.#kind.discard(answer);
      throw error;
    }
  }

  #redirect(answer: A): boolean {
    if (this.#sent === undefined || this.#redirects >= MAX_REDIRECTS) return false;
    const target = redirectTarget(this.#request.method, answer, this.#sent.base, this.#sent.path);
    if (target === undefined) return false;
    this.#redirects++;
    this.#redirectedTo = target;
    return true;
  }

  get #isReplayable(): boolean {
    return this.#request.body?.replayable !== false;
  }

  #retryDelay(failure: TryFailure): number | undefined {
    this.#failures++;
    const failed = {
      method: this.#request.method,
      replayable: this.#isReplayable,
      tries: this.#failures,
      waitedMs: this.#waitedMs,
      remainingMs: this.#limit?.remainingMs ?? Infinity,
      failure,
    };
    return retryDelay(failed, this.#context.random());
  }

  async #pause(delayMs: number): Promise<void> {
    this.#waitedMs += delayMs;
    await this.#context.wait(delayMs, this.#signal);
  }

  async #refusal(answer: A, askedMs: number | undefined): Promise<ApiError> {
    const { method, path } = this.#request;
    const { status, headers } = answer;
    const { data } = parseBody(await this.#kind.read(answer), headers);
    const accessToken = this.#sent?.credential.accessToken ?? '';
    return refusedAnswer({ status, data, headers, method, path, retryAfterMs: askedMs, accessToken });
  }

  /** What the caller gets for an error that ends the call. */
  #asSeen(error: unknown): unknown {
    const { signal, method, path } = this.#request;
    if (signal?.aborted && (error === signal.reason || error instanceof TransportError)) return signal.reason;
    if (this.#limit?.expired && !(error instanceof ServiceUnavailableError))
      return callError(new TransportError('timeout', false), method, path);
    return error instanceof TransportError ? callError(error, method, path) : error;
  }
}
