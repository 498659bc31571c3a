import type { ApiClient } from '../api/api-client.js';

/** Options of one request, as the official SDK gives them to its `httpClient`. */
interface CrowdinRequestConfig {
  headers: Record<string, string>;
}

/** The type of the option `httpClient` of `@crowdin/crowdin-api-client`. */
export interface CrowdinHttpClient {
  get<T>(url: string, config?: CrowdinRequestConfig): Promise<T>;
  delete<T>(url: string, config?: CrowdinRequestConfig): Promise<T>;
  head<T>(url: string, config?: CrowdinRequestConfig): Promise<T>;
  post<T>(url: string, data?: unknown, config?: CrowdinRequestConfig): Promise<T>;
  put<T>(url: string, data?: unknown, config?: CrowdinRequestConfig): Promise<T>;
  patch<T>(url: string, data?: unknown, config?: CrowdinRequestConfig): Promise<T>;
}

/** Host of the addresses that the SDK makes, unless its `apiDomain` says otherwise. */
const SDK_HOST = /^(?:[a-z\d-]+\.)?api\.crowdin\.com$/;

/**
 * Returns the `httpClient` for the official SDK, so that one SDK instance outlives expiry, 401 and rotation, goes to the
 * organization of the grant, and shares its `concurrency`:
 * `new Client({ token: '' }, { httpClient: crowdinHttpClient(req.apiClient) })`. The token and the organization of the SDK
 * are not used.
 */
export function crowdinHttpClient(client: ApiClient): CrowdinHttpClient {
  return {
    get: (url, config) => send(client, 'GET', url, undefined, config),
    delete: (url, config) => send(client, 'DELETE', url, undefined, config),
    head: (url, config) => send(client, 'HEAD', url, undefined, config),
    post: (url, data, config) => send(client, 'POST', url, data, config),
    put: (url, data, config) => send(client, 'PUT', url, data, config),
    patch: (url, data, config) => send(client, 'PATCH', url, data, config),
  };
}

async function send<T>(
  client: ApiClient,
  method: string,
  address: string,
  data: unknown,
  config: CrowdinRequestConfig | undefined,
): Promise<T> {
  const { host, hostname, pathname, search } = new URL(address);
  const base = new URL((await client.credentials()).baseUrl);
  if (host !== base.host && !SDK_HOST.test(hostname)) {
    throw new TypeError('url: expected an address of the API; leave `baseUrl` and `apiDomain` of the SDK out');
  }
  const { Authorization: _token, ...headers } = config?.headers ?? {};
  // The SDK means plain objects and arrays as JSON.
  const prototype: unknown = typeof data === 'object' && data !== null ? Object.getPrototypeOf(data) : undefined;
  const isJson = Array.isArray(data) || prototype === Object.prototype || prototype === null;
  const response = await client.fetch(new URL(`${pathname}${search}`, base), {
    method,
    headers: isJson ? { ...headers, 'Content-Type': 'application/json' } : headers,
    // The cast: `fetch` checks what the body is.
    body: isJson ? JSON.stringify(data) : (data as string | undefined),
  });
  const text = await response.text();
  const body: unknown = text === '' ? {} : JSON.parse(text);
  if (response.ok) return body as T;
  // The SDK reads `response.data`, and shows what it finds there; this error itself shows nothing of it.
  const error = new Error(`${method} ${pathname}: status ${response.status}`);
  throw Object.defineProperty(error, 'response', { value: { status: response.status, data: body } });
}
