import { openAsBlob } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { pipeline } from 'node:stream/promises';
import type { ApiClient } from 'passport-oauth-app';

export async function upload(client: ApiClient, path: string): Promise<unknown> {
  const form = new FormData();
  form.append('file', await openAsBlob(path), 'texts.json');
  return client.post('/files', { body: form, timeout: 120_000 });
}

export async function download(client: ApiClient, id: number, res: ServerResponse): Promise<void> {
  const { headers, body } = await client.stream('GET', `/files/${id}/download`);
  res.setHeader('content-type', String(headers['content-type'] ?? 'application/octet-stream'));
  await pipeline(body, res);
}
