import { beforeEach, onTestFinished } from 'vitest';
import { type ApiClient, createApiClient } from '../../src/api/api-client.js';
import type { ApiContextOptions, Credential, CredentialSource } from '../../src/api/api-context.js';
import { createApiContext } from '../../src/api/api-context.js';
import { NotAuthorizedError } from '../../src/errors.js';
import { HttpClient } from '../../src/http/http-client.js';
import { type FaultyServer, startFaultyServer } from '../support/faulty-server.js';
import { standIn } from '../support/stand-in.js';

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

  constructor(current = credentialOf('first')) {
    this.current = current;
  }

  get authorized(): boolean {
    return this.current !== undefined;
  }

  get last(): Credential | undefined {
    return this.current;
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
    this.current = credentialOf(`refresh-${this.refreshes}`, this.current?.organizationDomain);
    return this.current;
  }
}

export type Fixture = ReturnType<typeof createFixture>;

/** A client for a service at `origin`, closed with the test unless `http` is given; waits end at once, and the jitter is at its upper end. */
export function createFixture(origin: string, options: Partial<ApiContextOptions> & { source?: MemorySource } = {}) {
  const { source = new MemorySource(), http = new HttpClient(), ...others } = options;
  /** Milliseconds of each wait between tries. */
  const waits: number[] = [];
  const context = createApiContext({
    ...{ http, baseUrl: origin, strategyName: 'oauth-app', random: () => 1 },
    // No test ends by it but those that let time pass.
    timeoutMs: 60_000,
    wait: async (ms) => void waits.push(ms),
    ...others,
  });
  const { limiter } = context;
  if (options.http === undefined) onTestFinished(() => limiter.close().then(() => http.close()));
  const another = (own: CredentialSource = source) => createApiClient(own, context);
  return { client: another(), source, http, waits, limiter, another };
}

const [server, setServer] = standIn<FaultyServer>('service');
const [client, setClient] = standIn<ApiClient>('client');
const [source, setSource] = standIn<MemorySource>('client');
const [http, setHttp] = standIn<HttpClient>('client');

/** Of the running test, after {@link startApiForEachTest}: a service that answers as it is told, and a client of it. */
export { client, http, server, source };
export const waits: number[] = [];

/** Starts a service and a client before each test of the file or group. */
export function startApiForEachTest(options: Partial<ApiContextOptions> = {}): void {
  beforeEach(async () => {
    const started = await startServer();
    const fixture = createFixture(started.origin, { ...options, wait: async (ms) => void waits.push(ms) });
    waits.length = 0;
    setServer(started);
    setClient(fixture.client);
    setSource(fixture.source);
    setHttp(fixture.http);
  });
}

/** Starts a further service. It ends with the test. */
export async function startServer(): Promise<FaultyServer> {
  const started = await startFaultyServer();
  onTestFinished(() => started.close());
  return started;
}
