export * from '../../src/index.js';
export { redisTokenStore } from '../../src/redis/redis-token-store.js';
