import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type ApiClient, createApiClient } from '../../src/api/api-client.js';
import type { Credential } from '../../src/api/api-context.js';
import { createApiContext } from '../../src/api/api-context.js';
import { type Emulator, startEmulator } from '../../src/emulator/index.js';
import { NotAuthorizedError } from '../../src/errors.js';
import { HttpClient } from '../../src/http/http-client.js';
import { emulator as provider } from '../../src/providers/index.js';
import { body, claimsOf, refresh, type Tokens, tokensFor } from '../emulator/plain-client.js';
import { fastForward } from '../support/fast-forward.js';
import { MemorySource } from './fixture.js';

let service: Emulator;
let http: HttpClient;

beforeEach(async () => {
  const projects = Array.from({ length: 120 }, (_none, id) => ({ id, name: `Project ${id}` }));
  service = await startEmulator({
    users: [
      { id: '1', name: 'Ada', projects },
      { id: '2', name: 'Ben', domain: 'acme', projects: [{ id: 7, name: 'Site' }] },
    ],
  });
  http = new HttpClient();
});

afterEach(async () => {
  await http.close();
  await service.close();
});

/** A grant at the emulator, refreshed by plain HTTP. */
class EmulatorSource extends MemorySource {
  #tokens: Tokens;

  constructor(tokens: Tokens) {
    super(credentialFrom(tokens));
    this.#tokens = tokens;
  }

  override async refresh(): Promise<Credential> {
    this.refreshes++;
    const response = await refresh(service, this.#tokens.refresh_token);
    if (!response.ok) throw new NotAuthorizedError('The refresh was refused.');
    this.#tokens = await body<Tokens>(response);
    this.current = credentialFrom(this.#tokens);
    return this.current;
  }
}

function credentialFrom({ access_token: accessToken }: Tokens): Credential {
  const { domain } = claimsOf(accessToken);
  return { accessToken, organizationDomain: typeof domain === 'string' ? domain : undefined };
}

async function clientOf(user: string): Promise<{ client: ApiClient; source: EmulatorSource }> {
  const source = new EmulatorSource(await tokensFor(service, user));
  const { baseUrl, enterpriseBaseUrl } = service;
  const context = createApiContext({ http, baseUrl, enterpriseBaseUrl, timeoutMs: 120_000, strategyName: 'oauth-app' });
  return { client: createApiClient(source, context), source };
}

describe('against the emulator, an independent witness of service.md', () => {
  test('projects are those of the user, on the plain host', async () => {
    const { client } = await clientOf('1');
    const { data } = await client.projects<{ data: unknown[] }>({ limit: 2 });
    expect(data).toEqual([{ data: { id: 0, name: 'Project 0' } }, { data: { id: 1, name: 'Project 1' } }]);
    expect(await provider.userProfile(client)).toEqual({ id: '1', displayName: 'Ada' });
  });

  test("a member of an organization is served by the organization's host", async () => {
    const { client } = await clientOf('2');
    expect(client.baseUrl).toMatch(/^http:\/\/acme\.api\.localhost:\d+\/api\/v2$/);
    expect(await client.projects()).toMatchObject({ data: [{ data: { id: 7, name: 'Site' } }] });
  });

  test('pagination continues across an expiry', async () => {
    const { client, source } = await clientOf('1');
    const ids: number[] = [];
    for await (const { id } of client.paginate<{ id: number }>('/projects', { limit: 50 })) {
      if (ids.push(id) === 30) service.expireAccessTokens();
    }
    expect(ids).toEqual(Array.from({ length: 120 }, (_none, id) => id));
    expect(source.refreshes).toBe(1);
  });

  test('500 parallel calls whose token has expired make one refresh, and all succeed', {
    meta: { threats: [51] },
  }, async () => {
    const { client, source } = await clientOf('1');
    service.expireAccessTokens();
    const answers = await Promise.all(
      Array.from({ length: 500 }, () => client.projects<{ data: unknown[] }>({ limit: 1 })),
    );
    expect(answers.every(({ data }) => data.length === 1)).toBe(true);
    expect(source.refreshes).toBe(1);
  });

  test('faults of the API are what the client says they are', async () => {
    const { client } = await clientOf('1');
    service.fail('api', { status: 503 });
    expect(await client.projects()).toMatchObject({ pagination: { offset: 0 } });
    service.fail('api', { reset: true });
    expect(await client.projects()).toMatchObject({ pagination: { offset: 0 } });
    service.fail('api', { status: 403, body: { error: { message: 'Not allowed', code: 403 } } });
    await expect(client.projects()).rejects.toMatchObject({
      name: 'ApiError',
      status: 403,
      message: expect.stringContaining('Not allowed'),
    });
    service.fail('api', { hang: true });
    const { length } = service.requests;
    const late = fastForward(
      () => client.get('/projects', { timeout: 9_000 }),
      () => service.requests.length > length,
    );
    await expect(late).rejects.toMatchObject({ code: 'ERR_SERVICE_TIMEOUT' });
  });

  test('a grant that the user took back makes a NotAuthorizedError', async () => {
    const { client } = await clientOf('1');
    service.revoke('1');
    await expect(client.projects()).rejects.toBeInstanceOf(NotAuthorizedError);
  });
});
