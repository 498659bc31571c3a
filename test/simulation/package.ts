export * from '../../src/index.js';
export { redisTokenStore } from '../../src/redis/redis-token-store.js';
export { sqliteTokenStore } from '../../src/sqlite/sqlite-token-store.js';
