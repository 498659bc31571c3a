import { BaseUrls } from './api/api-base.js';
import type { ApiCalls } from './api/api-calls.js';
import { ApiClient } from './api/api-client.js';
import type { CredentialSource } from './api/credential.js';
import type { Engine } from './engine.js';
import type { LateEngine } from './late-engine.js';
import { noTokenStore } from './no-token-store.js';

/** The engine, and what it knows of the grant. */
interface Loaded {
  readonly engine: Engine;
  readonly source: CredentialSource;
}

/**
 * A client for a grant that is asked for before the engine is loaded: its first call has it loaded.
 *
 * @throws ConfigurationError without the option `tokenStore`: no request has brought a store yet
 */
export function lateClient(engine: LateEngine, grantId: string): ApiClient {
  const { baseUrl, enterpriseBaseUrl, tokenStore } = engine.settings;
  if (!tokenStore) throw noTokenStore();
  const grant = new LateGrant(engine, grantId);
  return new ApiClient(grant, { bases: new BaseUrls(baseUrl, enterpriseBaseUrl), calls: callsOf(grant) });
}

/** The credentials of a grant, and the calls with them, as soon as the engine is there. */
class LateGrant implements CredentialSource {
  readonly grantId: string;
  readonly #engine: LateEngine;
  #loaded: Loaded | undefined;

  constructor(engine: LateEngine, grantId: string) {
    this.#engine = engine;
    this.grantId = grantId;
  }

  get loaded(): Loaded | undefined {
    return this.#loaded;
  }

  get authorized(): boolean {
    return this.#loaded?.source.authorized ?? true;
  }

  get organizationDomain(): string | undefined {
    return this.#loaded?.source.organizationDomain;
  }

  async load(): Promise<Loaded> {
    const engine = await this.#engine.start();
    this.#loaded ??= { engine, source: engine.sourceOf(this.grantId) };
    return this.#loaded;
  }

  async credential(): ReturnType<CredentialSource['renew']> {
    return await (await this.load()).source.credential();
  }

  async renew(...refused: Parameters<CredentialSource['renew']>): ReturnType<CredentialSource['renew']> {
    return await (await this.load()).source.renew(...refused);
  }

  settled(...outcome: Parameters<CredentialSource['settled']>): void {
    this.#loaded?.source.settled(...outcome);
  }
}

/** The engine's calls: directly once it is there. */
function callsOf(grant: LateGrant): ApiCalls {
  const using = <T>(call: (loaded: Loaded) => Promise<T>): Promise<T> =>
    grant.loaded === undefined ? grant.load().then(call) : call(grant.loaded);
  return {
    data: (_source, ...call) => using(({ engine, source }) => engine.calls.data(source, ...call)),
    request: (_source, ...call) => using(({ engine, source }) => engine.calls.request(source, ...call)),
    stream: (_source, ...call) => using(({ engine, source }) => engine.calls.stream(source, ...call)),
    paginate: (_source, ...call) => {
      const paginated = ({ engine, source }: Loaded) => engine.calls.paginate(source, ...call);
      return grant.loaded === undefined ? later(() => grant.load().then(paginated)) : paginated(grant.loaded);
    },
  };
}

/** Started with the first item: before it nobody is there to hear of an error. */
async function* later<T>(items: () => Promise<AsyncIterable<T>>): AsyncGenerator<T, void, undefined> {
  yield* await items();
}
