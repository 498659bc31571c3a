import { randomInt } from 'node:crypto';
import { test as base } from 'vitest';
import type { GrantLostEvent, RefreshEvent } from '../../src/events.js';
import { type Grant, GrantCodec } from '../../src/grants/grant.js';
import type { GrantRepositoryOptions } from '../../src/grants/grant-repository.js';
import { HttpClient } from '../../src/http/http-client.js';
import type { TokenStore } from '../../src/index.js';
import { TokenEndpoint } from '../../src/oauth/token-endpoint.js';
import type { TokenSet } from '../../src/oauth/token-response.js';
import { Secret } from '../../src/redaction.js';
import { GrantManager } from '../../src/refresh/grant-manager.js';
import { type Behaviour, type FaultyServer, json, startFaultyServer } from '../support/faulty-server.js';
import { inAnotherProcess } from '../support/in-another-process.js';
import { TestClock } from '../support/test-clock.js';
import { TroubledStore } from '../support/troubled-store.js';

/** What a test sets otherwise for one manager. */
export interface ManagerOptions {
  readonly store?: TokenStore;
  readonly cache?: NonNullable<GrantRepositoryOptions['cache']> | false;
  readonly encryptionKeys?: readonly string[];
}

/** The grants of one process: a manager over a token endpoint and a store that fail as a test says. */
export type Grants = ReturnType<typeof grantsOf>;

export const LIFETIME_S = 7_200;

/** The token response of a login. */
export function tokens(name: string, changes: Partial<TokenSet> = {}): TokenSet {
  const none = { claims: {}, subject: undefined, organizationDomain: undefined, scope: undefined, params: {} };
  const pair = { accessToken: `access-${name}`, refreshToken: `refresh-${name}` };
  const lifetimes = { lifetimeMs: LIFETIME_S * 1000, refreshTokenLifetimeMs: undefined };
  return { ...none, ...pair, ...lifetimes, renewableLifetimeMs: LIFETIME_S * 1000, ...changes };
}

/** The answer of the token endpoint with a new pair. */
export function pair(name: string): Behaviour {
  const both = { access_token: `access-${name}`, refresh_token: `refresh-${name}` };
  return json({ ...both, token_type: 'bearer', expires_in: LIFETIME_S });
}

export const REFUSAL: Behaviour = json({ error: 'invalid_grant' }, 400);

/** A grant as records hold it. */
export function grantOf(name: string, changes: Partial<Grant> = {}): Grant {
  const { accessToken, refreshToken, lifetimeMs, organizationDomain, subject, scope } = tokens(name);
  const times = { lifetimeMs, createdAt: undefined, refreshedAt: undefined, refreshTokenExpiresAt: undefined };
  const expiresAt = new TestClock().now() + lifetimeMs;
  const version = { lineage: 'lineage', generation: 0, version: randomInt(1, 2 ** 47) };
  return { accessToken, refreshToken, organizationDomain, subject, scope, expiresAt, ...times, ...version, ...changes };
}

/** `test` of Vitest, with the grants of a process that close themselves. */
export const test = base.extend<{
  readonly startGrants: () => Promise<Grants>;
  readonly grants: Grants;
  /** Grants, of which `id` has expired: the first tokens of that login are `old`. */
  readonly expired: Grants;
}>({
  // biome-ignore lint/correctness/noEmptyPattern: Vitest reads from the pattern which fixtures this one uses
  startGrants: async ({}, use) => {
    const opened: { close(): Promise<void> }[] = [];
    await use(async () => {
      const [service, http] = [await startFaultyServer(), new HttpClient()];
      opened.push(service, http);
      return grantsOf(service, http);
    });
    for (const each of opened) await each.close();
  },
  grants: async ({ startGrants }, use) => use(await startGrants()),
  expired: async ({ grants }, use) => {
    await grants.manager.put('id', tokens('old'));
    grants.clock.advance(LIFETIME_S);
    grants.store.calls.length = 0;
    await use(grants);
  },
});

function grantsOf(service: FaultyServer, http: HttpClient) {
  const [store, clock] = [new TroubledStore(), new TestClock()];
  const events: (Pick<RefreshEvent, 'outcome'> & Partial<RefreshEvent>)[] = [];
  const lost: GrantLostEvent['reason'][] = [];
  let serial = 0;
  service.always((...exchange) => pair(`${++serial}`)(...exchange));
  const client = {
    ...({ tokenRequest: 'json', clientAuthentication: 'body', clientID: 'application' } as const),
    clientSecret: new Secret('the secret of the application'),
    ...{ http, authUrl: service.origin, timeoutMs: 60_000, clock: clock.now },
  };
  /** Starts one more manager, as another process would: over the same store, service and clock. */
  const another = (options: ManagerOptions = {}) =>
    new GrantManager({
      strategyName: 'oauth-app',
      store: inAnotherProcess(options.store ?? store),
      codec: new GrantCodec((options.encryptionKeys ?? []).map((key) => new Secret(key))),
      cache: options.cache === false ? undefined : (options.cache ?? { max: 1_000, ttlMs: 30_000 }),
      window: { leewayMs: 30_000, aheadMs: 300_000 },
      clock: clock.now,
      onRefresh: (_grantId, event) => void events.push(event),
      onLost: (_grantId, reason) => void lost.push(reason),
      onGrant: () => undefined,
      onUnlockedRefresh: () => undefined,
      endpoint: new TokenEndpoint({ ...client, tokenPath: '/oauth/token', organizationDomain: ({ domain }) => domain }),
    });
  const manager = another();
  const used = async (user = manager) => (await user.current('id')).accessToken;
  return {
    ...{ manager, service, store, clock, events, lost, another },
    /** The refresh tokens that the service was sent, in order. */
    sent: (): string[] => service.requests.map(({ body }) => JSON.parse(body.toString()).refresh_token),
    /** Returns the access token in use, or the status of the error. */
    use: (user?: GrantManager): Promise<string | number> => used(user).catch(({ status }) => status),
  };
}
