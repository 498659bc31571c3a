import type { ApiClient } from 'passport-oauth-app';

export async function allNames(client: ApiClient): Promise<string[]> {
  const names: string[] = [];
  for await (const { name } of client.paginate<{ name: string }>('/projects', { limit: 500, readAhead: true })) {
    names.push(name);
  }
  return names;
}
