import type { ApiClient } from 'passport-oauth-app';

export async function withFetch(client: ApiClient): Promise<unknown> {
  const headers = { authorization: `Bearer ${await client.accessToken()}` };
  const response = await fetch(`${client.baseUrl}/projects`, { headers });
  return response.json();
}
