import { Client } from '@crowdin/crowdin-api-client';
import { GraphQLClient } from 'graphql-request';
import ky, { type KyInstance } from 'ky';
import createClient from 'openapi-fetch';
import type { ApiClient } from 'passport-oauth-app';
import { crowdinHttpClient } from 'passport-oauth-app/providers';
import type { paths } from '../tools/projects.openapi.js';

export function withKy({ fetch, baseUrl }: ApiClient): KyInstance {
  return ky.create({ prefixUrl: baseUrl, fetch, retry: 0 });
}

export async function withOpenApi({ fetch, baseUrl }: ApiClient): Promise<string | undefined> {
  const { data } = await createClient<paths>({ baseUrl, fetch }).GET('/projects');
  return data?.data[0]?.data.name;
}

export function withGraphQL({ fetch, baseUrl }: ApiClient): Promise<{ viewer: { name: string } }> {
  const endpoint = new URL('/api/graphql', baseUrl).href;
  return new GraphQLClient(endpoint, { fetch }).request('query { viewer { name } }');
}

export async function withTheSdk(client: ApiClient): Promise<number> {
  const { projectsGroupsApi } = new Client({ token: '' }, { httpClient: crowdinHttpClient(client) });
  return (await projectsGroupsApi.listProjects()).data.length;
}
