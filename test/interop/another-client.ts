import { Client } from '@crowdin/crowdin-api-client';
import { GraphQLClient } from 'graphql-request';
import ky, { type KyInstance } from 'ky';
import createClient, { type Client as OpenApiClient } from 'openapi-fetch';
import type { ApiClient } from 'passport-oauth-app';
import { crowdinHttpClient } from 'passport-oauth-app/providers';

export function withKy({ fetch, baseUrl }: ApiClient): KyInstance {
  return ky.create({ prefixUrl: baseUrl, fetch, retry: 0 });
}

/** `Paths` is what `npx openapi-typescript` makes of the service's OpenAPI file. */
export function withOpenApi<Paths extends object>({ fetch, baseUrl }: ApiClient): OpenApiClient<Paths> {
  return createClient<Paths>({ baseUrl, fetch });
}

export function withGraphQL({ fetch, baseUrl }: ApiClient): Promise<{ viewer: { name: string } }> {
  const endpoint = new URL('/api/graphql', baseUrl).href;
  return new GraphQLClient(endpoint, { fetch }).request('query { viewer { name } }');
}

export async function withTheSdk(client: ApiClient): Promise<number> {
  const { projectsGroupsApi } = new Client({ token: '' }, { httpClient: crowdinHttpClient(client) });
  return (await projectsGroupsApi.listProjects()).data.length;
}
