export * from '../../src/index.js';
export { redisTokenStore } from '../../src/stores/redis-token-store.js';
