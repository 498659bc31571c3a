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

/** Options of {@link crowdinHttpClient}. */
export interface CrowdinHttpClientOptions {
  /**
   * Milliseconds of silence that end a request; `0` for no limit. An upload or a download that flows takes as long as it
   * needs. Default: the `timeout` of the strategy.
   */
  readonly timeout?: number | undefined;
}

/** Host of the addresses that the SDK makes, unless its `apiDomain` says otherwise. */
const SDK_HOST = /^(?:[a-z\d-]+\.)?api\.crowdin\.com$/;

/**
 * Returns the `httpClient` for the official SDK, so that one SDK instance outlives expiry, 401 and rotation, goes to the
 * organization of the grant, and shares its `concurrency`:
 * `new Client({ token: '' }, { httpClient: crowdinHttpClient(req.apiClient) })`. The token and the organization of the SDK
 * are not used.
 */
export function crowdinHttpClient(client: ApiClient, options: CrowdinHttpClientOptions = {}): CrowdinHttpClient {
  const { timeout } = options;
  const send = <T>(method: string, url: string, data: unknown, config: CrowdinRequestConfig | undefined) =>
    request<T>(client, { method, url, data, headers: config?.headers, timeout });
  return {
    get: (url, config) => send('GET', url, undefined, config),
    delete: (url, config) => send('DELETE', url, undefined, config),
    head: (url, config) => send('HEAD', url, undefined, config),
    post: (url, data, config) => send('POST', url, data, config),
    put: (url, data, config) => send('PUT', url, data, config),
    patch: (url, data, config) => send('PATCH', url, data, config),
  };
}

interface CrowdinRequest {
  readonly method: string;
  readonly url: string;
  readonly data: unknown;
  readonly headers: Record<string, string> | undefined;
  readonly timeout: number | undefined;
}

async function request<T>(
  client: ApiClient,
  { method, url, data, headers: given, timeout }: CrowdinRequest,
): Promise<T> {
  const { host, hostname, pathname, search } = new URL(url);
  const base = new URL((await client.credentials()).baseUrl);
  if (host !== base.host && !SDK_HOST.test(hostname)) {
    throw new TypeError('url: expected an address of the API; leave `baseUrl` and `apiDomain` of the SDK out');
  }
  const { Authorization: _token, ...headers } = given ?? {};
  // The SDK means plain objects and arrays as JSON.
  const prototype: unknown = typeof data === 'object' && data !== null ? Object.getPrototypeOf(data) : undefined;
  const isJson = Array.isArray(data) || prototype === Object.prototype || prototype === null;
  const response = await client.fetch(new URL(`${pathname}${search}`, base), {
    method,
    headers: isJson ? { ...headers, 'Content-Type': 'application/json' } : headers,
    // The cast: `fetch` checks what the body is.
    body: isJson ? JSON.stringify(data) : (data as string | undefined),
    timeout,
  });
  const body = parsed(await response.text());
  if (response.ok && body !== undefined) return body as T;
  const isRefused = !response.ok;
  const message = `${method} ${pathname}: ${isRefused ? `status ${response.status}` : 'the body is not valid JSON'}`;
  const code = isRefused ? response.status : 502;
  // The SDK reads `response.data`, and shows what it finds there; this error itself shows nothing of it.
  const shown = isRefused && hasErrors(body) ? body : { error: { message, code } };
  throw Object.defineProperty(new Error(message), 'response', { value: { status: response.status, data: shown } });
}

/** Returns the value of a JSON text, `{}` for an empty one, and `undefined` for another, such as a page of a proxy. */
function parsed(text: string): unknown {
  try {
    return text === '' ? {} : JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Returns true if the body is an error in a shape that the SDK knows. From any other it makes a status of 500. */
function hasErrors(body: unknown): boolean {
  if (typeof body !== 'object' || body === null) return false;
  return ('errors' in body && Array.isArray(body.errors)) || ('error' in body && typeof body.error === 'object');
}
