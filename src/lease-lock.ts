export { type Lease, leaseLock } from './stores/lease-lock.js';
export type { HeldLease } from './stores/token-store.js';
