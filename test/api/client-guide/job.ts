import type { Strategy } from 'passport-oauth-app';

export async function count(strategy: Strategy, grantId: string, signal: AbortSignal): Promise<number> {
  const client = strategy.client(grantId);
  let projects = 0;
  for await (const _project of client.paginate('/projects', { signal })) projects++;
  return projects;
}
