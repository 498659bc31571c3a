import { Agent, type IncomingHttpHeaders, request } from 'node:http';
import { type Emulator, startEmulator } from 'passport-oauth-app/emulator';
import { afterEach, describe, expect, test } from 'vitest';
import { authorizeUrl, callback } from '../emulator/plain-client.js';

const agent = new Agent({ keepAlive: true, maxSockets: 16 });
const LIMIT = 100_000;

let service: Emulator;
afterEach(() => service.close());

interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
}

function post(path: string, type: string, body: string): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const headers = { 'content-type': type, 'content-length': Buffer.byteLength(body) };
    const sent = request(`${service.authUrl}${path}`, { method: 'POST', headers, agent }, (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('end', () => {
        const text = Buffer.concat(chunks).toString();
        resolve({ status: response.statusCode ?? 0, headers: response.headers, text });
      });
    });
    sent.on('error', reject).end(body);
  });
}

async function approvedCode(): Promise<string> {
  const form = new URLSearchParams(new URL(authorizeUrl(service)).search);
  form.set('decision', 'approve');
  const { headers } = await post('/oauth/authorize', 'application/x-www-form-urlencoded', form.toString());
  return new URL(headers.location ?? '').searchParams.get('code') ?? '';
}

function token(fields: Record<string, string>): Promise<Answer> {
  const { clientID, clientSecret } = service.options;
  const credentials = { client_id: clientID, client_secret: clientSecret };
  return post('/oauth/token', 'application/json', JSON.stringify({ ...credentials, ...fields }));
}

const exchange = (code: string) => token({ grant_type: 'authorization_code', redirect_uri: callback, code });
const refresh = (refreshToken: string) => token({ grant_type: 'refresh_token', refresh_token: refreshToken });
const refreshTokenIn = ({ text }: Answer): string => JSON.parse(text).refresh_token;

/** Runs the work so many times, sixteen at once. */
async function repeat(times: number, work: () => Promise<unknown>): Promise<void> {
  let left = times;
  const worker = async () => {
    while (left > 0) {
      left -= 1;
      await work();
    }
  };
  await Promise.all(Array.from({ length: 16 }, worker));
}

describe('memory of a long soak', () => {
  test('keeps the newest hundred thousand codes', { timeout: 300_000 }, async () => {
    service = await startEmulator({ keepRequests: 0, codeLifetime: 3600 });
    const [first, second] = [await approvedCode(), await approvedCode()];
    await repeat(LIMIT - 1, approvedCode);
    expect((await exchange(first)).status).toBe(400);
    expect((await exchange(second)).status).toBe(200);
    expect((await exchange(await approvedCode())).status).toBe(200);
  });

  test('keeps the hundred thousand grants that were refreshed last', { timeout: 600_000 }, async () => {
    service = await startEmulator({ keepRequests: 0 });
    const idle = refreshTokenIn(await exchange(await approvedCode()));
    const used = refreshTokenIn(await exchange(await approvedCode()));
    await repeat(1000, async () => exchange(await approvedCode()));
    const rotated = refreshTokenIn(await refresh(used));
    await repeat(LIMIT - 1001, async () => exchange(await approvedCode()));
    expect((await refresh(idle)).status).toBe(400);
    expect((await refresh(rotated)).status).toBe(200);
  });
});
