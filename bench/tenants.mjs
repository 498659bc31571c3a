// Heap and requests of many tenants: `node --expose-gc bench/tenants.mjs [tenants] [ready]`, over the built package.
import { apiClient, memoryTokenStore, Strategy } from '../dist/index.js';
import { tenants } from '../dist/tenants.js';

const [count = 10_000, max = 1_000] = process.argv.slice(2).map(Number);
const heap = () => {
  for (let round = 0; round < 4; round++) globalThis.gc();
  return process.memoryUsage().heapUsed;
};
const kilobytes = (bytes, of) => `${(bytes / of / 1024).toFixed(1)} KB`;
const optionsOf = (tenant) => ({
  authUrl: `http://${tenant}.localhost:1`,
  baseUrl: `http://${tenant}.localhost:1`,
  clientID: `client of ${tenant}`,
  clientSecret: `secret of ${tenant}`,
});
const tokens = { accessToken: 'a'.repeat(200), refreshToken: 'r'.repeat(200), expiresAt: Date.now() + 3_600_000 };
const shops = tenants({
  name: 'shop',
  scope: 'project',
  tokenStore: memoryTokenStore(),
  allowedHosts: ['*.localhost:1'],
  callbackURL: 'https://app.example.net/{tenant}',
  tenantOf: (req) => req.headers['x-tenant'],
  resolve: optionsOf,
  max,
});
const use = (number) => shops.grant({ tenant: `t${number}`, grantId: '1' });
await use(0);
const empty = heap();
for (let number = 0; number < max; number++) await use(number);
const full = heap();
console.log(`ready: ${kilobytes(full - empty, max)} for each of ${max}`);
for (let number = max; number < count; number++) await use(number);
console.log(`not ready: ${kilobytes(heap() - full, count - max)} for each of ${count - max}`);

// CPU of a request whose tenant is ready, beside that of one strategy.
const strategy = new Strategy({
  ...optionsOf('single'),
  callbackURL: '/',
  scope: 'project',
  tokenStore: memoryTokenStore(),
});
const run = async (handler, requests = 200_000) => {
  const req = () => ({ headers: { 'x-tenant': 't1' }, method: 'GET', url: '/', session: {}, socket: {} });
  const before = process.cpuUsage();
  for (let number = 0; number < requests; number++) await new Promise((next) => handler(req(), {}, next));
  const { user, system } = process.cpuUsage(before);
  return (user + system) / requests;
};
const handlers = [apiClient(strategy), apiClient(shops)];
await shops.importGrant({ tenant: 't1', grantId: '1' }, tokens);
const best = [Infinity, Infinity];
for (let round = 0; round < 5; round++)
  for (const [index, handler] of handlers.entries()) best[index] = Math.min(best[index], await run(handler, 50_000));
console.log(`apiClient(): ${best.map((us) => `${us.toFixed(2)} µs`).join(' for one strategy, ')} for tenants`);
await Promise.all([shops.close(), strategy.close()]);
