import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { body, codeFor, exchange, refresh, service, startService, type Tokens, tokensFor } from './plain-client.js';

const LIMIT = 100_000;

let folder: string;
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'emulator-limits-'));
  await start();
});
afterEach(async () => {
  await service.close();
  rmSync(folder, { recursive: true });
});

async function start(): Promise<void> {
  await startService({ state: join(folder, 'state.json'), keepRequests: 0, codeLifetime: 3600 });
}

/** Starts the service again, with its state changed in between. */
async function restart(change: (saved: Saved) => void): Promise<void> {
  await service.close();
  const saved: Saved = JSON.parse(readFileSync(join(folder, 'state.json'), 'utf8'));
  change(saved);
  writeFileSync(join(folder, 'state.json'), JSON.stringify(saved));
  await start();
}

interface Saved {
  readonly codes: [code: string, issued: unknown][];
  readonly grants: { readonly grants: { readonly id: number }[]; readonly serials: [grants: number] };
}

test('the newest hundred thousand codes are kept', async () => {
  const [first, second] = [await codeFor(), await codeFor()];
  await restart(({ codes }) => {
    while (codes.length < LIMIT) codes.push([`code-${codes.length}`, codes[0]?.[1]]);
  });
  const newest = await codeFor();
  expect((await exchange(first)).status).toBe(400);
  expect((await exchange(second)).status).toBe(200);
  expect((await exchange(newest)).status).toBe(200);
});

test('the hundred thousand grants that were refreshed last are kept', async () => {
  const [idle, used] = [await tokensFor(), await tokensFor()];
  await restart(({ grants: { grants, serials } }) => {
    while (grants.length < LIMIT) grants.push({ ...grants[0], id: grants.length + 1 });
    serials[0] = LIMIT;
  });
  const { refresh_token } = await body<Tokens>(await refresh(used.refresh_token));
  for (const _login of [1, 2]) await tokensFor();
  expect((await refresh(idle.refresh_token)).status).toBe(400);
  expect((await refresh(refresh_token)).status).toBe(200);
});
