import { AsyncLocalStorage } from 'node:async_hooks';
import axios, { AxiosError, type AxiosInstance } from 'axios';
import type { RequestHandler } from 'express';
import { Connection } from 'jsforce';
import type { ApiClient } from 'passport-oauth-app';

/** For an SDK that takes an axios instance. */
export function withAxios(client: ApiClient): AxiosInstance {
  const instance = axios.create({ baseURL: client.baseUrl });
  instance.interceptors.request.use(async (config) => {
    config.headers.setAuthorization(`Bearer ${await client.accessToken()}`);
    return config;
  });
  instance.interceptors.response.use(undefined, async (error: unknown) => {
    if (!(error instanceof AxiosError) || error.status !== 401 || !error.config) throw error;
    const refused = String(error.config.headers.getAuthorization()).replace('Bearer ', '');
    // If this rejects, its error is the one to throw: it says whether the user has to log in again.
    error.config.headers.setAuthorization(`Bearer ${await client.accessToken({ refused })}`);
    // Not the instance, which would retry again.
    return axios.request(error.config);
  });
  return instance;
}

const current = new AsyncLocalStorage<AxiosInstance>();

/** Gives each request one SDK object. Mount it after body parsers and `apiClient(strategy)`. */
export const withSdk: RequestHandler = (req, _res, next) => current.run(withAxios(req.apiClient), next);

/** Returns the SDK object of the request being handled, in any function that its handler calls. */
export function sdk(): AxiosInstance {
  const instance = current.getStore();
  if (!instance) throw new Error('sdk() was called outside a request');
  return instance;
}

/** For Salesforce. */
export async function withJsforce(client: ApiClient): Promise<Connection> {
  const { accessToken, baseUrl } = await client.credentials();
  return new Connection({
    instanceUrl: baseUrl,
    accessToken,
    refreshFn: ({ accessToken: refused }, callback) => {
      client.accessToken({ refused: refused ?? '' }).then((token) => callback(null, token), callback);
    },
  });
}
