export * from '../../src/index.js';
export { redisTokenStore } from '../../src/stores/redis-token-store.js';
export { sqliteTokenStore } from '../../src/stores/sqlite-token-store.js';
