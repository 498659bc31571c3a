import type { IncomingMessage } from 'node:http';
import { nameOfTenant, publicName } from '../errors.js';
import { sessionOf } from '../session/session.js';
import { canonicalTenant } from './tenant-name.js';

/** A login at a tenant. */
export interface TenantLogin {
  readonly tenant: string;
  readonly grantId: string;
}

/** What sessions hold of the logins at tenants: a reference for each, and the tenant of the latest. */
export class TenantSessions {
  readonly #name: string;

  /** @param name That of all strategies. */
  constructor(name: string) {
    this.#name = name;
  }

  /** Returns the tenant of the session's latest login. */
  latest(req: IncomingMessage): string | undefined {
    return canonicalTenant(sessionOf(req)?.[this.#name]);
  }

  /** Takes the logins out of the session, and returns them. */
  take(req: IncomingMessage): readonly TenantLogin[] {
    const session = sessionOf(req) ?? {};
    const logins: TenantLogin[] = [];
    for (const [key, grantId] of Object.entries(session)) {
      const tenant = this.#tenantOf(key);
      if (tenant === undefined) continue;
      if (key === nameOfTenant(this.#name, tenant) && typeof grantId === 'string') logins.push({ tenant, grantId });
      delete session[key];
    }
    delete session[this.#name];
    return logins;
  }

  /** Returns a function that copies the logins to the session of a new one. */
  carryOver(tenant: string): (former: object, next: object) => void {
    return (former, next) => {
      for (const [key, value] of Object.entries(former))
        if (this.#tenantOf(key) !== undefined && !Object.hasOwn(next, key)) Reflect.set(next, key, value);
      Reflect.set(next, this.#name, tenant);
    };
  }

  #tenantOf(key: string): string | undefined {
    const { strategy, tenant } = publicName(key.split('\u00b7', 1).join());
    return strategy === this.#name ? tenant : undefined;
  }
}
