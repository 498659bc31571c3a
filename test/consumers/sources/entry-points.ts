// Each entry point once, with no types of any framework or database around.
import { createServer } from 'node:http';
import { tokenStoreChecks } from '../../../src/conformance/index.js';
import { leaseLock } from '../../../src/databases/lease-lock.js';
import { startEmulator } from '../../../src/emulator/index.js';
import {
  ApiError,
  type ApiResponse,
  apiClient,
  memoryTokenStore,
  NotAuthorizedError,
  OAuthAppError,
  type Profile,
  type RequestOptions,
  type StoredGrant,
  Strategy,
  type StrategyOptions,
  sessionTokenStore,
  type TokenStore,
} from '../../../src/index.js';
import { mysqlTokenStore } from '../../../src/mysql/mysql-token-store.js';
import { postgresTokenStore } from '../../../src/postgres/postgres-token-store.js';
import { crowdin } from '../../../src/providers/index.js';
import { redisTokenStore } from '../../../src/redis/redis-token-store.js';
import { sqliteTokenStore } from '../../../src/sqlite/sqlite-token-store.js';

type RedisClient = Parameters<typeof redisTokenStore>[0];
type PostgresPool = Parameters<typeof postgresTokenStore>[0];
type MysqlPool = Parameters<typeof mysqlTokenStore>[0];
type SqliteDatabase = Parameters<typeof sqliteTokenStore>[0];
type SessionStore = Parameters<typeof sessionTokenStore>[0];

/** All stores are of one type. */
export function stores(
  redis: RedisClient,
  pool: PostgresPool,
  mysql: MysqlPool,
  sqlite: SqliteDatabase,
  sessions: SessionStore,
): TokenStore[] {
  return [
    memoryTokenStore(),
    redisTokenStore(redis, { prefix: 'grants:', ttl: 3600, lease: 60 }),
    postgresTokenStore(pool, { table: 'grants', ttl: 3600, lease: 60 }),
    mysqlTokenStore(mysql, { table: 'grants', ttl: 3600, lease: 60 }),
    sqliteTokenStore(sqlite, { table: 'grants', ttl: 3600, lease: 60 }),
    sessionTokenStore(sessions, { prefix: 'grants.', ttl: 3600 }),
  ];
}

/** A store of the application's own, with the three methods that one must have. */
export const ownStore: TokenStore = {
  get: async (id: string): Promise<StoredGrant | undefined> => (id === '' ? undefined : undefined),
  set: async () => {},
  delete: async () => {},
};

/** The same with a lock, out of a lease in a database. */
export const lockingStore: TokenStore = {
  ...ownStore,
  lock: leaseLock({ take: async () => true, release: async () => {}, isHeld: async () => true }, 30_000),
};

const options: StrategyOptions = {
  ...crowdin,
  clientID: 'id',
  clientSecret: 'secret',
  callbackURL: '/callback',
  scope: 'project tm',
  tokenStore: ownStore,
  encryptionKeys: ['the new key of grants', 'the old key of grants'],
  refresh: { ahead: 600 },
  cache: false,
  userProfile: (client) => client.get<{ readonly name: string }>('/user'),
  grantId: (_req, user) => (user as { readonly id?: string }).id,
};

/** A client for a job, and what its members give. */
export async function job(grantId: string): Promise<string> {
  const strategy = new Strategy(options, (_accessToken, _refreshToken, profile: Profile, done) => done(null, profile));
  const client = strategy.client(grantId);
  const settings: RequestOptions = { query: { limit: 10, all: true }, headers: { accept: '*/*' }, timeout: 1000 };
  const answer: ApiResponse<{ readonly total: number }> = await client.request('GET', '/projects', settings);
  for await (const project of client.paginate<{ readonly id: number }>('/projects')) console.log(project.id.toFixed());
  const { body } = await client.stream('GET', '/export');
  body.resume();
  await strategy.close();
  return `${answer.status} ${answer.data.total.toFixed()} ${client.organizationDomain ?? client.baseUrl}`;
}

/** The middleware under nothing but node:http. */
export function server(strategy: Strategy): ReturnType<typeof createServer> {
  const attach = apiClient(strategy);
  return createServer((req, res) => attach(req, res, () => res.end()));
}

/** What a caller does about an error. */
export function advice(error: unknown): string {
  if (error instanceof NotAuthorizedError) return 'log in';
  if (error instanceof ApiError) return `${error.method} ${error.path}: ${error.status}`;
  return error instanceof OAuthAppError ? error.code : 'unknown';
}

/** The emulator's options are a strategy's. */
export async function tests(): Promise<string[]> {
  const service = await startEmulator({ users: [{ id: '1', name: 'Ada' }], accessTokenLifetime: 60 });
  const strategy = new Strategy({ ...service.options, callbackURL: '/callback', scope: ['project'] });
  service.fail('token', { status: 503, times: 2 });
  await strategy.close();
  await service.close();
  return tokenStoreChecks(() => memoryTokenStore(), { lease: 1 }).map(({ name }) => name);
}
