/** Stands between a strategy's name and a tenant. The option `name` is ASCII, so no other strategy has it. */
const MARK = '\u00bb';

/** Returns the name of the strategy of one tenant: its key in sessions, in cookies and in the token store. */
export function nameOfTenant(name: string, tenant: string): string {
  return `${name}${MARK}${tenant}`;
}

/** A strategy's name as the application knows it. */
export interface PublicName {
  readonly strategy: string;
  /** The tenant that one of many strategies is for. */
  readonly tenant?: string;
}

/** Returns the name that events and errors have. */
export function publicName(name: string): PublicName {
  const [strategy = name, tenant] = name.split(MARK);
  return tenant === undefined ? { strategy } : { strategy, tenant };
}
