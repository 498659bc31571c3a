import { HttpClient } from '../../src/http/http-client.js';
import { TransportError } from '../../src/http/transport-error.js';
import { TokenEndpoint } from '../../src/oauth/token-endpoint.js';
import { Secret } from '../../src/redaction.js';
import type { TestClock } from '../support/test-clock.js';
import { LIFETIME_S } from './fixture.js';

/** What the token endpoint answers with: a status and a body, or how the connection fails. */
export type Answer = readonly [status: number, body: object] | TransportError;

/** A token endpoint whose answers come without a socket: nothing of it takes time, unless a test says so. */
export interface WiredEndpoint {
  readonly endpoint: TokenEndpoint;
  /** Plans the answers to the requests to come, after what else happens meanwhile. The others get new pairs: `access-1` and so on. */
  readonly answer: (...next: (Answer | (() => Answer | Promise<Answer>))[]) => void;
  /** The refresh tokens that were sent, in order; `undefined` for a request without one. */
  readonly sent: (string | undefined)[];
}

/** The answer with a new pair. */
export function pairOf(name: string, changes: object = {}): Answer {
  const tokens = { access_token: `access-${name}`, refresh_token: `refresh-${name}`, token_type: 'bearer' };
  return [200, { ...tokens, expires_in: LIFETIME_S, ...changes }];
}

export const REFUSAL: Answer = [400, { error: 'invalid_grant' }];
export const DOWN: Answer = [503, {}];

/** Opens one. */
export function wiredEndpoint(clock: TestClock): WiredEndpoint {
  const answers: Parameters<WiredEndpoint['answer']> = [];
  const sent: WiredEndpoint['sent'] = [];
  class Wire extends HttpClient {
    override send = async ({ body }: { readonly body?: unknown }) => {
      sent.push(JSON.parse(String(body)).refresh_token);
      const next = answers.shift() ?? pairOf(`${sent.length}`);
      const answer = typeof next === 'function' ? await next() : next;
      if (answer instanceof TransportError) throw answer;
      return { status: answer[0], headers: {}, body: Buffer.from(JSON.stringify(answer[1])) };
    };
  }
  const endpoint = new TokenEndpoint({
    ...({ tokenRequest: 'json', clientAuthentication: 'body', tokenPath: '/oauth/token' } as const),
    ...{ http: new Wire(), authUrl: 'https://auth.example.com', timeoutMs: 10_000, clock: clock.now },
    ...{ clientID: 'application', clientSecret: new Secret('the secret of the application') },
    organizationDomain: () => undefined,
  });
  return { endpoint, answer: (...next) => void answers.push(...next), sent };
}
