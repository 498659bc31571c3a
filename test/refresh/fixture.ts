import { randomInt } from 'node:crypto';
import { setImmediate as turn } from 'node:timers/promises';
import { test as base } from 'vitest';
import type { GrantLostEvent, RefreshEvent } from '../../src/events.js';
import { type Grant, GrantCodec, type RefreshWindow } from '../../src/grants/grant.js';
import type { GrantRepositoryOptions } from '../../src/grants/grant-repository.js';
import { HttpClient } from '../../src/http/http-client.js';
import type { TokenStore } from '../../src/index.js';
import { Revocations } from '../../src/jobs/revocations.js';
import { TokenEndpoint } from '../../src/oauth/token-endpoint.js';
import type { TokenSet } from '../../src/oauth/token-response.js';
import { Secret } from '../../src/redaction.js';
import { GrantManager, type GrantManagerOptions } from '../../src/refresh/grant-manager.js';
import { type Behaviour, type FaultyServer, json, startFaultyServer } from '../support/faulty-server.js';
import { inAnotherProcess } from '../support/store-views.js';
import { TestClock } from '../support/test-clock.js';
import { TroubledStore } from '../support/troubled-store.js';

/** What a test sets otherwise for one manager. */
export interface ManagerOptions {
  readonly store?: TokenStore;
  readonly cache?: NonNullable<GrantRepositoryOptions['cache']> | false;
  readonly window?: RefreshWindow;
  readonly encryptionKeys?: readonly string[];
  readonly strategyName?: string;
  readonly parametersOf?: GrantManagerOptions['parametersOf'];
  /** Revokes the tokens of deleted grants. */
  readonly revokes?: boolean;
}

/** The grants of one process: a manager over a token endpoint and a store that fail as a test says. */
export interface Grants {
  readonly manager: GrantManager;
  /** The token endpoint. Answers with a new pair unless it is told otherwise. */
  readonly service: FaultyServer;
  readonly store: TroubledStore;
  readonly clock: TestClock;
  readonly events: (Pick<RefreshEvent, 'outcome'> & Partial<RefreshEvent>)[];
  readonly lost: GrantLostEvent['reason'][];
  /** What has become of grants: `id stored`. */
  readonly actions: string[];
  readonly warnings: string[];
  /** Starts one more manager, as another process would: over the same store, service and clock. */
  another(options?: ManagerOptions): GrantManager;
  /** The refresh tokens that the service was sent, in order. */
  sent(): string[];
  /** The tokens that were revoked, in order. */
  revoked(): string[];
  /** Resolves when every refresh that has asked for its lock has ended: each has had its event. */
  idle(): Promise<void>;
  /** Returns the access token in use, or the status of the error. */
  use(manager?: GrantManager): Promise<string | number>;
}

export const WINDOW: RefreshWindow = { leewayMs: 30_000, aheadMs: 300_000 };
export const LIFETIME_S = 7_200;
const REVOCATION_PATH = '/oauth/revoke';

/** The token response of a login. */
export function tokens(name: string, changes: Partial<TokenSet> = {}): TokenSet {
  const none = { claims: {}, subject: undefined, organizationDomain: undefined, scope: undefined, params: {} };
  const pair = { accessToken: `access-${name}`, refreshToken: `refresh-${name}` };
  const lifetimes = { lifetimeMs: LIFETIME_S * 1000, refreshTokenLifetimeMs: undefined };
  return { ...none, ...pair, ...lifetimes, renewableLifetimeMs: LIFETIME_S * 1000, ...changes };
}

/** The answer of the token endpoint with a new pair. */
export function pair(name: string): Behaviour {
  return json({
    access_token: `access-${name}`,
    token_type: 'bearer',
    expires_in: LIFETIME_S,
    refresh_token: `refresh-${name}`,
  });
}

export const REFUSAL: Behaviour = json({ error: 'invalid_grant' }, 400);

/** A grant as records hold it. */
export function grantOf(name: string, changes: Partial<Grant> = {}): Grant {
  return {
    accessToken: `access-${name}`,
    refreshToken: `refresh-${name}`,
    expiresAt: new TestClock().now() + LIFETIME_S * 1000,
    lifetimeMs: LIFETIME_S * 1000,
    organizationDomain: undefined,
    subject: undefined,
    scope: undefined,
    createdAt: undefined,
    refreshedAt: undefined,
    refreshTokenExpiresAt: undefined,
    lineage: 'lineage',
    generation: 0,
    version: randomInt(1, 2 ** 47),
    ...changes,
  };
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

function grantsOf(service: FaultyServer, http: HttpClient): Grants {
  const [store, clock] = [new TroubledStore(), new TestClock()];
  const events: Grants['events'] = [];
  const lost: Grants['lost'] = [];
  const actions: Grants['actions'] = [];
  const warnings: Grants['warnings'] = [];
  let serial = 0;
  service.always((socket, request) => {
    if (request.target === REVOCATION_PATH) return json({})(socket, request);
    serial += 1;
    pair(`${serial}`)(socket, request);
  });
  const client = {
    ...({ tokenRequest: 'json', clientAuthentication: 'body', clientID: 'application' } as const),
    clientSecret: new Secret('the secret of the application'),
    ...{ http, authUrl: service.origin, timeoutMs: 60_000, clock: clock.now },
  };
  const bodies = (target: string) =>
    service.requests.flatMap((request) => (request.target === target ? [JSON.parse(request.body.toString())] : []));
  const endpoint = { ...client, revocationPath: REVOCATION_PATH };
  const onGrant = (grantId: string, action: string) => void actions.push(`${grantId} ${action}`);
  const another = (options: ManagerOptions = {}) =>
    new GrantManager({
      strategyName: options.strategyName ?? 'oauth-app',
      store: inAnotherProcess(options.store ?? store),
      codec: new GrantCodec((options.encryptionKeys ?? []).map((key) => new Secret(key))),
      cache: options.cache === false ? undefined : (options.cache ?? { max: 1_000, ttlMs: 30_000 }),
      window: options.window ?? WINDOW,
      clock: clock.now,
      onRefresh: (_grantId, event) => void events.push(event),
      onLost: (_grantId, reason) => void lost.push(reason),
      onGrant,
      onUnlockedRefresh: () => void warnings.push('no lock'),
      parametersOf: options.parametersOf,
      revocations: options.revokes ? new Revocations({ endpoint, isBusy: () => false, onRevoked: onGrant }) : undefined,
      endpoint: new TokenEndpoint({ ...client, tokenPath: '/oauth/token', organizationDomain: ({ domain }) => domain }),
    });
  const manager = another();
  return {
    manager,
    service,
    store,
    clock,
    events,
    lost,
    actions,
    warnings,
    another,
    sent: () => bodies('/oauth/token').map(({ refresh_token }) => refresh_token),
    revoked: () => bodies(REVOCATION_PATH).map(({ token }) => token),
    idle: async () => {
      do await turn();
      while (store.calls.filter((call) => call === 'lock').length > events.length);
    },
    use: async (user = manager) => {
      try {
        return (await user.current('id')).accessToken;
      } catch (error) {
        return (error as { status: number }).status;
      }
    },
  };
}
