import type { ApiClient } from 'passport-oauth-app';

interface Project {
  readonly id: number;
  readonly name: string;
}

export async function calls(client: ApiClient): Promise<string> {
  const page = await client.projects<{ data: { data: Project }[] }>({ limit: 50 });
  const first = page.data[0]?.data.id ?? 0;

  const { data } = await client.get<{ data: Project }>(`/projects/${first}`);
  await client.patch(`/projects/${first}`, { json: [{ op: 'replace', path: '/name', value: `${data.name}!` }] });
  await client.get(`/projects/${first}/branches`, {
    query: { name: 'feature/x', since: new Date(0), tag: ['a', 'b'] },
  });
  await client.delete(`/projects/${first}/labels/${encodeURIComponent('to do')}`);

  const { headers } = await client.request('HEAD', '/projects', { headers: { 'If-None-Match': '"1"' } });
  return String(headers.etag);
}
