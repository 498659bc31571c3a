import type { RefreshEvent } from '../../src/events.js';
import { type Grant, newVersion } from '../../src/grants/grant.js';
import { GrantCache } from '../../src/grants/grant-cache.js';
import { GrantCodec } from '../../src/grants/grant-codec.js';
import { GrantRepository } from '../../src/grants/grant-repository.js';
import { HttpClient } from '../../src/http/http-client.js';
import { TokenEndpoint } from '../../src/oauth/token-endpoint.js';
import { Secret } from '../../src/redaction.js';
import { GrantRefresher } from '../../src/refresh/refresher.js';
import type { TokenStore } from '../../src/stores/token-store.js';
import { TestClock } from '../support/test-clock.js';

/** A grant that was given at the clock's beginning and lives for two hours. */
export function grantOf(name: string, changes: Partial<Grant> = {}): Grant {
  return {
    accessToken: `access-${name}`,
    refreshToken: `refresh-${name}`,
    expiresAt: new TestClock().now() + 7_200_000,
    lifetimeMs: 7_200_000,
    organizationDomain: undefined,
    subject: undefined,
    refreshes: 0,
    version: newVersion(),
    ...changes,
  };
}

/** A token endpoint of the package over HTTP. */
export function endpointAt(authUrl: string, clock: TestClock): TokenEndpoint {
  return new TokenEndpoint({
    http: new HttpClient(),
    authUrl,
    clientID: 'application',
    clientSecret: new Secret('the secret of the application'),
    timeoutMs: 1_000,
    organizationDomain: ({ domain }) => domain,
    clock: clock.now,
  });
}

/** A repository, and what it tells. */
export function repositoryOver(store: TokenStore, { cache = true }: { cache?: boolean } = {}) {
  const clock = new TestClock();
  const unreadable: string[] = [];
  let recoveries = 0;
  const repository = new GrantRepository({
    store,
    codec: new GrantCodec([]),
    cache: cache ? new GrantCache({ max: 100, ttlMs: 30_000 }) : undefined,
    clock: clock.now,
    onUnreadable: (id) => void unreadable.push(id),
    onRecovery: () => {
      recoveries += 1;
    },
  });
  return { repository, clock, unreadable, recoveries: () => recoveries };
}

/** A refresher over a token endpoint, and what it tells. */
export function refresherOver(store: TokenStore, authUrl: string) {
  const { repository, clock } = repositoryOver(store);
  const told: Pick<RefreshEvent, 'outcome' | 'reason'>[] = [];
  const lost: string[] = [];
  const refresher = new GrantRefresher({
    repository,
    endpoint: endpointAt(authUrl, clock),
    clock: clock.now,
    isUsable: (grant) => grant.expiresAt > clock.now(),
    onRefresh: (_id, { outcome, reason }) => void told.push(reason === undefined ? { outcome } : { outcome, reason }),
    onLost: (_id, reason) => void lost.push(reason),
  });
  return { refresher, repository, clock, told, lost };
}
