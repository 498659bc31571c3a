export { TenantError } from './tenant-error.js';
export type { TenantGrantSummary } from './tenant-grants.js';
export type { TenantOptions, TenantRequest, TenantsOptions } from './tenant-options.js';
export { type GrantPlace, type Tenants, tenants } from './tenants.js';
