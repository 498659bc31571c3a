import type { ApiClient } from 'passport-oauth-app';

export async function allNames(client: ApiClient): Promise<string[]> {
  const names: string[] = [];
  for await (const { name } of client.paginate<{ name: string }>('/projects', { limit: 500, readAhead: true })) {
    names.push(name);
  }
  return names;
}

interface Found {
  readonly results: readonly string[];
  readonly cursor?: string;
}

export async function firstMatch(client: ApiClient, word: string): Promise<string | undefined> {
  const items = (page: unknown) => (page as Found).results;
  const next = (page: unknown) => {
    const { cursor } = page as Found;
    return cursor === undefined ? undefined : { cursor };
  };
  for await (const result of client.paginate('/search', { query: { word }, items, next })) {
    if (result.includes(word)) return result;
  }
  return undefined;
}
