import { afterEach, beforeEach } from 'vitest';
import { type ApiClient, createApiClient } from '../../src/api/api-client.js';
import type { Credential, CredentialSource } from '../../src/api/api-context.js';
import { type ApiContextOptions, createApiContext } from '../../src/api/api-context.js';
import type { ConcurrencyLimiter } from '../../src/api/concurrency-limiter.js';
import { NotAuthorizedError } from '../../src/errors.js';
import { HttpClient } from '../../src/http/http-client.js';
import { type FaultyServer, startFaultyServer } from '../support/faulty-server.js';

/** Looks like a JWT, as a whole and in its parts. */
export function tokenOf(name: string): string {
  return `eyJhbGciOiJub25lIn0.${Buffer.from(`{"sub":"${name}-canary"}`).toString('base64url')}.${name}-SIGNATURE-CANARY`;
}

export function credentialOf(name: string, organizationDomain?: string): Credential {
  return Object.freeze({ accessToken: tokenOf(name), organizationDomain });
}

/** A grant in memory: refreshes are counted, and are one for all that wait. */
export class MemorySource implements CredentialSource {
  grantId: string | undefined = 'grant-1';
  current: Credential | undefined;
  refreshes = 0;
  readonly settledWith: boolean[] = [];
  #refresh: Promise<Credential> | undefined;

  constructor(current: Credential | undefined = credentialOf('first')) {
    this.current = current;
  }

  get authorized(): boolean {
    return this.current !== undefined;
  }

  get organizationDomain(): string | undefined {
    return this.current?.organizationDomain;
  }

  credential(): Credential | Promise<Credential> {
    if (this.#refresh !== undefined) return this.#refresh;
    if (this.current === undefined) throw new NotAuthorizedError('Nobody is logged in.');
    return this.current;
  }

  renew(refused: Credential): Promise<Credential> {
    if (this.#refresh !== undefined) return this.#refresh;
    if (this.current !== undefined && this.current !== refused) return Promise.resolve(this.current);
    // A new one was refused as well: the cool-down.
    if (this.settledWith.at(-1) === false) return Promise.resolve(refused);
    this.#refresh = this.refresh().finally(() => {
      this.#refresh = undefined;
    });
    return this.#refresh;
  }

  reportOutcome(_renewed: Credential, accepted: boolean): void {
    this.settledWith.push(accepted);
  }

  /** What a refresh does; to be replaced. */
  async refresh(): Promise<Credential> {
    this.refreshes++;
    await new Promise((resolve) => setImmediate(resolve));
    this.current = credentialOf(`refresh-${this.refreshes}`, this.organizationDomain);
    return this.current;
  }
}

/** A client, and what can be seen and steered of it. */
export interface Fixture {
  readonly client: ApiClient;
  readonly source: MemorySource;
  readonly http: HttpClient;
  readonly limiter: ConcurrencyLimiter;
  /** Milliseconds of each wait between tries. */
  readonly waits: number[];
  another(source?: CredentialSource): ApiClient;
}

/** A client for a service at `origin`; waits end at once, and the jitter is always at its upper end. */
export function createFixture(
  origin: string,
  options: Partial<ApiContextOptions> & { source?: MemorySource } = {},
): Fixture {
  const { source = new MemorySource(), http = new HttpClient(), ...others } = options;
  const waits: number[] = [];
  const context = createApiContext({
    http,
    baseUrl: origin,
    timeoutMs: 5_000,
    strategyName: 'oauth-app',
    random: () => 1,
    wait: async (ms) => {
      waits.push(ms);
    },
    ...others,
  });
  return {
    client: createApiClient(source, context),
    source,
    http,
    waits,
    limiter: context.limiter,
    another: (own = source) => createApiClient(own, context),
  };
}

/** A service that answers as it is told, and a client of it. */
export interface ApiOfTest {
  readonly server: FaultyServer;
  readonly fixture: Fixture;
}

/** Starts a service and a client before each test of the file or group, and ends both after it. */
export function startApiForEachTest(): ApiOfTest {
  const started = {} as { server: FaultyServer; fixture: Fixture };
  beforeEach(async () => {
    started.server = await startFaultyServer();
    started.fixture = createFixture(started.server.origin);
  });
  afterEach(async () => {
    await started.server.close();
    await started.fixture.http.close();
  });
  return started;
}
