import { openAsBlob } from 'node:fs';
import { pipeline } from 'node:stream/promises';
import type { ApiClient } from 'passport-oauth-app';

export async function upload(client: ApiClient, path: string): Promise<unknown> {
  return client.post('/storages', { body: await openAsBlob(path), timeout: 120_000 });
}

export async function download(client: ApiClient, path: string, target: NodeJS.WritableStream): Promise<void> {
  const { body } = await client.stream('GET', path);
  await pipeline(body, target);
}

/** For a signed link of another host. It must not get the token. */
export async function downloadLink(client: ApiClient, path: string): Promise<Response> {
  const { data } = await client.get<{ data: { url: string } }>(path);
  return fetch(data.url);
}
