import { textOf } from './environment.js';
import type { Machine } from './machine.js';
import { tokensIn } from './service.js';
import type { StoreWrite } from './store.js';
import type { World } from './world.js';

/** How the assertions of the application begin: no store may have one. */
export const ASSERTION = 'an assertion of the application ';

/** What else no record may hold. */
const SECRETS = [ASSERTION, 'a secret of the application', 'client_credentials'];

/** How long an answer of the store may have been on its way when a process sends its request. */
const ROOM_MS = 2_000;

/** Watches the grants that belong to the application: one request for a token while there is none, and no secret in the store. */
export class Organizations {
  readonly #world: World;
  /** By organization: the record's id, the access token that the store has, and since when. */
  readonly #saved = new Map<string, { readonly id: string; readonly token: string; readonly since: number }>();

  constructor(world: World) {
    this.#world = world;
  }

  /** A token request leaves its process. */
  asks(organization: string, machine: Machine, issuedAt: number): void {
    const { oracle, store, scheduler, machines } = this.#world;
    const lease = store.leaseOf(machine, organization);
    const isOfThis = ({ id }: { readonly id: string }) => id.endsWith(`+${organization}`);
    const isRecent = ({ time }: { readonly time: number }) => time >= scheduler.now - 60_000;
    const isForgotten =
      store.droppedLeases.some((dropped) => isOfThis(dropped) && isRecent(dropped)) || store.failovers.some(isRecent);
    if (isForgotten || issuedAt !== scheduler.now || oracle.isFrozenSending({ machine, issuedAt, lease })) return;
    if (!lease) oracle.violate('one request', `${machine.name} asks for a token of ${organization} without the lock`);
    const saved = this.#saved.get(organization);
    if (!lease || !saved || saved.since >= lease.since || !machines.every(({ isOnTime }) => isOnTime)) return;
    if (store.staleReads.some((read) => isOfThis(read) && isRecent(read))) return;
    if (this.#world.service.remainingMs(saved.token) > this.#aheadMs)
      oracle.violate('one request', `${machine.name} asks for a token of ${organization}, which has a good one`);
  }

  /** The store has a record in place of another. */
  stored({ id, after, machine }: StoreWrite): void {
    const { oracle, options, scheduler, service } = this.#world;
    const organization = options.organizations.find((each) => id.endsWith(`+${each}`));
    if (options.organizations.length === 0) return;
    const text = after === undefined ? '' : textOf((JSON.parse(after) as { readonly sealed: string }).sealed);
    if (SECRETS.some((secret) => text.includes(secret)))
      oracle.violate('no secret', `${machine?.name} stores a secret with ${id}`);
    if (organization === undefined) return;
    const tokens = tokensIn(text);
    if (tokens.some(({ kind }) => kind === 'refresh'))
      oracle.violate('no secret', `${machine?.name} stores a refresh token of ${organization}`);
    const [{ family, serial } = { family: -1, serial: -1 }] = tokens;
    const token = `at-${family}-${serial}`;
    if (tokens.length === 0) this.#saved.delete(organization);
    else if (this.#saved.get(organization)?.token !== token)
      this.#saved.set(organization, { id, token, since: scheduler.now });
    if (service.family(family)?.user !== organization && tokens.length > 0)
      oracle.violate('own token', `the record of ${organization} has a token of another`);
  }

  /** From how long before its end a token is renewed, with room for what is on its way. */
  get #aheadMs(): number {
    return (this.#world.options.lifetimeS * 1000) / 4 + ROOM_MS;
  }
}
