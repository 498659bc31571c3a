import type { ApiClient } from 'passport-oauth-app';

export async function allNames(client: ApiClient): Promise<string[]> {
  const names: string[] = [];
  for await (const { name } of client.paginate<{ name: string }>('/projects', { limit: 500, readAhead: true })) {
    names.push(name);
  }
  return names;
}

export async function firstMatch(client: ApiClient, word: string): Promise<string | undefined> {
  const items = (page: unknown) => (page as { results: readonly string[] }).results;
  for await (const result of client.paginate('/search', { query: { word }, items })) {
    if (result.includes(word)) return result;
  }
  return undefined;
}
