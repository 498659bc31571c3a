import { type ApiClient, createApiClient } from '../api/api-client.js';
import type { ApiContext } from '../api/api-context.js';
import { unknownTenant } from './tenant-error.js';

/** Members that call the API: each finds its tenant first. */
const CALLS: ReadonlySet<string | symbol> = new Set([
  ...['projects', 'get', 'post', 'put', 'patch', 'delete', 'request', 'stream'],
  ...['fetch', 'accessToken', 'credentials'],
]);

/**
 * Returns a client outside of a request. Each call finds the tenant, so that the client outlives a change in the directory. What
 * depends on the tenant's options, such as `baseUrl`, is known after the first call.
 *
 * @param context Of a client whose tenant is not known yet.
 * @param find Returns the client of the tenant.
 */
export function tenantClient(
  grantId: string,
  tenant: string | undefined,
  context: ApiContext,
  find: () => Promise<ApiClient>,
): ApiClient {
  const credential = () => Promise.reject(unknownTenant());
  let latest = createApiClient({ grantId, authorized: true, credential }, context);
  const found = async () => {
    latest = await find();
    return latest;
  };
  async function* pages(args: readonly unknown[]): AsyncGenerator {
    const client = await found();
    yield* Reflect.apply(client.paginate, client, args);
  }
  return new Proxy(latest, {
    get(_target, key) {
      if (key === 'tenant') return tenant;
      if (key === 'paginate') return (...args: readonly unknown[]) => pages(args);
      if (CALLS.has(key))
        return async (...args: readonly unknown[]) => {
          const client = await found();
          return await Reflect.apply(Reflect.get(client, key, client), client, args);
        };
      const value: unknown = Reflect.get(latest, key, latest);
      return typeof value === 'function' ? value.bind(latest) : value;
    },
  });
}
