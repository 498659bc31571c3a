import { EventEmitter, once } from 'node:events';
import { memoryTokenStore, type StoredGrant, type TokenStore } from 'passport-oauth-app';
import { tokenStoreChecks } from 'passport-oauth-app/conformance';
import { type Lease, leaseLock } from 'passport-oauth-app/lease-lock';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { pause } from '../../src/waiting.js';
import { mayLeave } from '../support/may-leave.js';

type FullStore = Required<TokenStore>;

afterEach(() => vi.useRealTimers());

/** What the checks find that `createStore`'s stores do not pass, by their names. No time passes, whatever the stores wait for. */
async function findings(
  createStore: () => TokenStore | Promise<TokenStore>,
  options?: Parameters<typeof tokenStoreChecks>[1],
): Promise<Record<string, string>> {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance', 'Date'], now: Date.UTC(2026, 0) });
  const failed = tokenStoreChecks(createStore, options).map(({ name, run }) =>
    run().then(
      () => [],
      (error: Error) => [[name, error.message]],
    ),
  );
  await vi.advanceTimersByTimeAsync(60_000);
  return Object.fromEntries((await Promise.all(failed)).flat());
}

/** The names of these checks. */
async function failures(...args: Parameters<typeof findings>): Promise<string[]> {
  return Object.keys(await findings(...args));
}

/** A memory store of which some methods are wrong. */
function broken(spoil: (right: FullStore) => Partial<FullStore>): () => TokenStore {
  return () => {
    const right = memoryTokenStore();
    return { ...right, ...spoil(right) };
  };
}

const hasExpired = (grant: StoredGrant | undefined): boolean => grant !== undefined && grant.expiresAt <= Date.now();

/** Seconds of the leases below. */
const LEASE = 2;

type Leases = Map<string, { owner: string; endsAt: number }>;

const rightLease = (leases: Leases): Lease => ({
  take: async (id, owner) => {
    if ((leases.get(id)?.endsAt ?? 0) > Date.now()) return false;
    leases.set(id, { owner, endsAt: Date.now() + LEASE * 1000 });
    return true;
  },
  release: async (id, owner) => void (leases.get(id)?.owner === owner && leases.delete(id)),
});

/** Returns what makes stores over one storage, as processes have them. Their locks are leases, some part of which is wrong. */
function sharing(
  spoil: (leases: Leases) => Partial<Lease> = () => ({}),
  leasesOf: (shared: Leases) => Leases = (shared) => shared,
  longer = 1,
): () => TokenStore {
  const [grants, shared]: [FullStore, Leases] = [memoryTokenStore(), new Map()];
  return () => {
    const leases = leasesOf(shared);
    return { ...grants, lock: leaseLock({ ...rightLease(leases), ...spoil(leases) }, LEASE * 1000 * longer) };
  };
}

describe('a right store passes', () => {
  for (const { name, run } of tokenStoreChecks(memoryTokenStore)) test(name, run);

  test('also if each store shares the storage of the others, or is promised', async () => {
    const store = memoryTokenStore();
    expect(await failures(async () => store)).toEqual([]);
  });

  test('also if its locks end by themselves, and the checks know when', async () => {
    expect(await failures(sharing(), { lease: LEASE })).toEqual([]);
  });

  test.for([[], ['update'], ['lock'], ['add', 'list']] as const)(
    'also with %j alone beside the three methods',
    async (names) => {
      const bare = (): TokenStore => {
        const { get, set, delete: remove, ...others } = memoryTokenStore();
        return { get, set, delete: remove, ...Object.fromEntries(names.map((name) => [name, others[name]])) };
      };
      expect(await failures(bare)).toEqual([]);
    },
  );

  test('and nothing is left in it', async () => {
    const ids = new Set<string>();
    const right = memoryTokenStore();
    const watched: TokenStore = {
      ...right,
      set: (id, grant) => right.set(id, grant).finally(() => ids.add(id)),
    };
    expect(await failures(() => watched)).toEqual([]);
    expect(ids.size).toBeGreaterThan(50);
    expect((await Promise.all([...ids].map((id) => right.get(id)))).filter((grant) => grant !== undefined)).toEqual([]);
  });
});

const pick = ({ version, expiresAt, sealed }: StoredGrant): StoredGrant => ({ version, expiresAt, sealed });

/** Returns what makes stores over one storage that read 200 ms late what the others write. */
function lagging(): () => TokenStore {
  const create = sharing();
  return (): TokenStore => {
    const store = create() as FullStore;
    const written = new Set<string>();
    const visible = new Map<string, StoredGrant | undefined>();
    const writing =
      <A extends unknown[], T>(write: (id: string, ...rest: A) => Promise<T>) =>
      (id: string, ...rest: A): Promise<T> => {
        written.add(id);
        return write(id, ...rest);
      };
    return {
      get: async (id) => {
        const now = await store.get(id);
        const seen = visible.get(id);
        setTimeout(() => visible.set(id, now), 200);
        return written.has(id) ? now : seen;
      },
      set: writing(store.set),
      delete: writing(store.delete),
      update: writing(store.update),
      add: writing(store.add),
      lock: store.lock,
    };
  };
}

/** Returns what makes stores over one storage that change a grant atomically within their own process alone. */
function alone(): () => TokenStore {
  const { get, set, ...shared } = memoryTokenStore();
  return () => {
    const { lock } = memoryTokenStore();
    const replace = (id: string, grant: StoredGrant, version?: number) =>
      lock(id, async () => {
        const isExpected = (await get(id))?.version === version;
        if (isExpected) await set(id, grant);
        return isExpected;
      });
    return { ...shared, get, set, update: replace, add: (id, grant) => replace(id, grant) };
  };
}

/** Returns what makes stores that keep one form of a grant, and hand out another. */
function keeping(
  kept: (grant: StoredGrant) => StoredGrant,
  handedOut: (grant: StoredGrant) => StoredGrant,
): () => TokenStore {
  return () => {
    const grants = new Map<string, StoredGrant>();
    return {
      get: async (id) => {
        const grant = grants.get(id);
        return grant && handedOut(grant);
      },
      set: async (id, grant) => void grants.set(id, kept(grant)),
      delete: async (id) => void grants.delete(id),
    };
  };
}

/** Returns what makes stores that list the ids with this start, too. */
function listing(start: string): () => TokenStore {
  return broken(({ set, list }) => {
    const ids: string[] = [];
    return {
      set: (id, grant) => set(id, grant).finally(() => id.startsWith(start) && ids.push(id)),
      list: async function* (prefix) {
        yield* list(prefix);
        yield* ids.filter((id) => id.startsWith(prefix ?? ''));
      },
    };
  });
}

/** Returns what makes stores that do not tell of one of their methods. A `set` of a new id is told all the same. */
function silent(
  method: 'set' | 'add' | 'update' | 'delete',
  isSilent: (grant: StoredGrant) => boolean = () => true,
): () => TokenStore {
  return broken((right) => {
    const silenced = new Set<string>();
    const change = right[method] as (id: string, grant: StoredGrant, version?: number) => Promise<boolean>;
    const changeSilently: typeof change = async (id, grant, ...rest) => {
      const isNew = method === 'set' && (await right.get(id)) === undefined;
      if (!isNew && isSilent(grant)) silenced.add(id);
      return change(id, grant, ...rest).finally(() => silenced.delete(id));
    };
    return {
      [method]: changeSilently,
      watch: (changed) => right.watch((id, version) => silenced.has(id) || changed(id, version)),
    };
  });
}

const mistakes: Record<string, { create: () => TokenStore; lease?: number; caughtBy: string[] }> = {
  'gives null for a grant that is not there': {
    create: broken(({ get }) => ({ get: async (id) => (await get(id)) ?? JSON.parse('null') })),
    caughtBy: [
      'get resolves to undefined for an id that was never set',
      'an id may hold all printable ASCII characters, and 1,024 of them',
      'delete with the version of the grant removes it',
      'delete removes the grant and no other, and resolves also if there was none',
      'get reads what another store over the same storage has just written',
      'update and delete of a version take a grant whose access token has expired',
      'update creates no grant where none was ever set',
      'update does not bring back a grant that was deleted',
      'an update undoes no deletion that comes at the same time',
      'the store works as ever inside a lock, and neither set nor delete frees the lock',
    ],
  },
  'keeps the fields that it knows': {
    create: broken(({ set, update }) => ({
      set: (id, grant) => set(id, pick(grant)),
      update: (id, grant, version) => update(id, pick(grant), version),
    })),
    caughtBy: [
      'get gives back what was set, fields that the store does not know included',
      'what a caller does to a grant that it gave or got does not change the stored one',
      'update replaces the whole grant if its version is the one given, and resolves to true',
    ],
  },
  'reads late what other processes write': {
    create: lagging(),
    lease: LEASE,
    caughtBy: [
      'get reads what another store over the same storage has just written',
      'get inside a lock reads what the holder before has written',
    ],
  },
  'merges a grant into the one before': {
    create: broken(({ get, set }) => ({ set: async (id, grant) => set(id, { ...(await get(id)), ...grant }) })),
    caughtBy: ['set replaces the whole grant'],
  },
  'keeps the higher version': {
    create: broken(({ get, set }) => ({
      set: async (id, grant) => {
        if (((await get(id))?.version ?? -1) < grant.version) await set(id, grant);
      },
    })),
    caughtBy: ['set takes any safe integer as a version, one lower than the last included'],
  },
  'drops a grant with its access token': {
    create: broken(({ get }) => ({
      get: async (id) => {
        const grant = await get(id);
        return grant && grant.expiresAt > Date.now() ? grant : undefined;
      },
    })),
    caughtBy: [
      'a grant stays after its access token has expired',
      'update and delete of a version take a grant whose access token has expired',
    ],
  },
  'updates no grant whose access token has expired': {
    create: broken(({ get, update }) => ({
      update: async (id, ...others) => !hasExpired(await get(id)) && update(id, ...others),
    })),
    caughtBy: ['update and delete of a version take a grant whose access token has expired'],
  },
  'deletes no grant whose access token has expired, if a version is given': {
    create: broken(({ get, delete: remove }) => ({
      delete: async (id, version) => {
        if (version === undefined || !hasExpired(await get(id))) await remove(id, version);
      },
    })),
    caughtBy: ['update and delete of a version take a grant whose access token has expired'],
  },
  'adds a grant over one whose access token has expired': {
    create: broken(({ get, set, add }) => ({
      add: async (id, grant) => {
        if (!hasExpired(await get(id))) return add(id, grant);
        await set(id, grant);
        return true;
      },
    })),
    caughtBy: ['add leaves a grant whose access token has expired'],
  },
  'lists no grant whose access token has expired': {
    create: broken(({ get, list }) => ({
      list: async function* (prefix) {
        for await (const id of list(prefix)) if (!hasExpired(await get(id))) yield id;
      },
    })),
    caughtBy: ['list yields a grant whose access token has expired'],
  },
  'folds the case of ids': {
    create: broken(({ get, set, delete: remove, update }) => ({
      get: (id) => get(id.toLowerCase()),
      set: (id, grant) => set(id.toLowerCase(), grant),
      delete: (id, version) => remove(id.toLowerCase(), version),
      update: (id, grant, version) => update(id.toLowerCase(), grant, version),
    })),
    caughtBy: [
      'ids that differ only by case have separate grants',
      'list yields the ids of grants that are stored, and of no grant that was deleted',
    ],
  },
  'cuts ids off': {
    create: broken(({ get, set, delete: remove }) => ({
      get: (id) => get(id.slice(0, 255)),
      set: (id, grant) => set(id.slice(0, 255), grant),
      delete: (id, version) => remove(id.slice(0, 255), version),
    })),
    caughtBy: ['ids of 1,024 characters that differ in the last one have separate grants'],
  },
  'decodes ids': {
    create: broken(({ get, set, delete: remove }) => ({
      get: (id) => get(decodeURIComponent(id)),
      set: (id, grant) => set(decodeURIComponent(id), grant),
      delete: (id, version) => remove(decodeURIComponent(id), version),
    })),
    caughtBy: [
      'ids that look alike have separate grants',
      'an id may hold all printable ASCII characters, and 1,024 of them',
      'list yields the ids of grants that are stored, and of no grant that was deleted',
      'list of a prefix yields the ids that begin with it, and no other',
    ],
  },
  'refuses long ids': {
    create: broken(({ set }) => ({
      set: async (id, grant) => {
        if (id.length > 255) throw new Error('too long');
        await set(id, grant);
      },
    })),
    caughtBy: [
      'ids of 1,024 characters that differ in the last one have separate grants',
      'an id may hold all printable ASCII characters, and 1,024 of them',
    ],
  },
  'deletes whatever the version': {
    create: broken(({ delete: remove }) => ({ delete: (id) => remove(id) })),
    caughtBy: ['delete of a version removes the grant only while its version is that'],
  },
  'deletes no grant whose version is given': {
    create: broken(({ delete: remove }) => ({
      delete: async (id, version) => {
        if (version === undefined) await remove(id);
      },
    })),
    caughtBy: [
      'delete with the version of the grant removes it',
      'update and delete of a version take a grant whose access token has expired',
    ],
  },
  'refuses large grants': {
    create: broken(({ set }) => ({
      set: async (id, grant) => {
        if (grant.sealed.length > 8192) throw new Error('too long');
        await set(id, grant);
      },
    })),
    caughtBy: ['a grant may be 32 KiB large'],
  },
  'keeps what it was given itself': {
    create: keeping((grant) => grant, structuredClone),
    caughtBy: ['what a caller does to a grant that it gave or got does not change the stored one'],
  },
  'hands out what it keeps': {
    create: keeping(structuredClone, (grant) => grant),
    caughtBy: ['what a caller does to a grant that it gave or got does not change the stored one'],
  },
  'complains of deleting what is not there': {
    create: broken(({ get, delete: remove }) => ({
      delete: async (id, version) => {
        if ((await get(id)) === undefined) throw new Error('not found');
        await remove(id, version);
      },
    })),
    caughtBy: [
      'delete with the version of the grant removes it',
      'delete removes the grant and no other, and resolves also if there was none',
    ],
  },
  'remembers for good what was deleted': {
    create: broken(({ set, delete: remove }) => {
      const gone = new Set<string>();
      return {
        set: async (id, grant) => (gone.has(id) ? undefined : set(id, grant)),
        delete: (id, version) => remove(id, version).finally(() => version === undefined && gone.add(id)),
      };
    }),
    caughtBy: ['a grant can be set again after it was deleted'],
  },
  'writes a grant in two steps': {
    create: broken(({ get, set }) => ({
      set: async (id, grant) => {
        await set(id, { ...grant, sealed: (await get(id))?.sealed ?? '' });
        await set(id, grant);
      },
    })),
    caughtBy: ['sets and gets at the same time never return a grant that was never set'],
  },
  'updates whatever the version': {
    create: broken(({ get, set }) => ({
      update: async (id, grant) => {
        if ((await get(id)) === undefined) return false;
        await set(id, grant);
        return true;
      },
    })),
    caughtBy: [
      'update leaves a grant of another version as it is, and resolves to false',
      'update compares versions exactly, up to the largest safe integer',
      'of 50 updates of one version at the same time, one resolves to true, and its grant is stored',
    ],
  },
  'updates without atomicity': {
    create: broken(({ get, set }) => ({
      update: async (id, grant, version) => {
        if ((await get(id))?.version !== version) return false;
        await set(id, grant);
        return true;
      },
    })),
    caughtBy: ['of 50 updates of one version at the same time, one resolves to true, and its grant is stored'],
  },
  'changes grants atomically within its process alone': {
    create: alone(),
    caughtBy: [
      'of 50 updates of one version at the same time, one resolves to true, and its grant is stored',
      'of 50 additions for one id at the same time, one resolves to true, and its grant is stored',
    ],
  },
  'updates no grant whose lock is held': {
    create: broken(({ lock, update }) => ({ update: (id, ...rest) => lock(id, () => update(id, ...rest)) })),
    caughtBy: ['the store works as ever inside a lock, and neither set nor delete frees the lock'],
  },
  'updates what is not there': {
    create: broken(({ get, set, update }) => ({
      update: async (id, grant, version) => {
        if ((await get(id)) !== undefined) return update(id, grant, version);
        await set(id, grant);
        return true;
      },
    })),
    caughtBy: [
      'update creates no grant where none was ever set',
      'update does not bring back a grant that was deleted',
    ],
  },
  'compares versions as 32-bit integers': {
    create: broken(({ get, update }) => ({
      update: async (id, grant, version) => {
        const stored = (await get(id))?.version ?? -1;
        return update(id, grant, (stored | 0) === (version | 0) || stored > 2 ** 31 ? stored : version);
      },
    })),
    caughtBy: ['update compares versions exactly, up to the largest safe integer'],
  },
  'writes an update without another look at the version': {
    create: broken(({ get, set }) => {
      const claimed = new Set<string>();
      return {
        update: async (id, grant, version) => {
          const claim = `${version} ${id}`;
          if ((await get(id))?.version !== version || claimed.has(claim)) return false;
          claimed.add(claim);
          await pause(5);
          await set(id, grant);
          return true;
        },
      };
    }),
    caughtBy: [
      'an update undoes no deletion that comes at the same time',
      'an update replaces no grant that is set at the same time',
    ],
  },
  'deletes a version without another look at it': {
    create: broken(({ get, delete: remove }) => ({
      delete: async (id, version) => {
        if (version !== undefined && (await get(id))?.version !== version) return;
        if (version !== undefined) await pause(5);
        await remove(id);
      },
    })),
    caughtBy: ['delete of a version removes no grant that is set at the same time'],
  },
  'adds over what is there': {
    create: broken(({ set }) => ({ add: async (id, grant) => set(id, grant).then(() => true) })),
    caughtBy: [
      'add leaves a grant as it is, and resolves to false',
      'add leaves a grant whose access token has expired',
      'of 50 additions for one id at the same time, one resolves to true, and its grant is stored',
    ],
  },
  'adds without atomicity': {
    create: broken(({ get, set }) => ({
      add: async (id, grant) => {
        if ((await get(id)) !== undefined) return false;
        await set(id, grant);
        return true;
      },
    })),
    caughtBy: ['of 50 additions for one id at the same time, one resolves to true, and its grant is stored'],
  },
  'never adds where there was a grant': {
    create: broken(({ add }) => {
      const known = new Set<string>();
      return {
        add: async (id, grant) => {
          if (known.has(id)) return false;
          known.add(id);
          return add(id, grant);
        },
      };
    }),
    caughtBy: ['add creates a grant where there is none, also after a deletion, and resolves to true'],
  },
  'merges in an update': {
    create: broken(({ get, update }) => ({
      update: async (id, grant, version) => update(id, { ...(await get(id)), ...grant }, version),
    })),
    caughtBy: ['update replaces the whole grant if its version is the one given, and resolves to true'],
  },
  'lists what was deleted': {
    create: broken(({ set }) => {
      const ids = new Set<string>();
      return {
        set: (id, grant) => set(id, grant).finally(() => !/^(?:login|limit|frame):/.test(id) && ids.add(id)),
        list: async function* (prefix = '') {
          yield* [...ids].filter((id) => id.startsWith(prefix));
        },
      };
    }),
    caughtBy: ['list yields the ids of grants that are stored, and of no grant that was deleted'],
  },
  'lists the first page alone': {
    create: broken(({ list }) => ({
      list: async function* (prefix) {
        let count = 0;
        for await (const id of list(prefix)) if (count++ < 500) yield id;
      },
    })),
    caughtBy: ['list yields every one of many grants'],
  },
  'lists what a pattern of its database matches': {
    create: broken(({ list }) => ({
      list: async function* (prefix = '') {
        const pattern = new RegExp(`^${prefix.replace(/[+]/g, '[+]').replace(/[*%]/g, '.*').replace(/_/g, '.')}`);
        for await (const id of list()) if (pattern.test(id)) yield id;
      },
    })),
    caughtBy: ['list of a prefix yields the ids that begin with it, and no other'],
  },
  'lists marks of used logins': {
    create: listing('login:'),
    caughtBy: ['list yields neither marks of used logins nor locks that are held'],
  },
  'lists the places of a limit': {
    create: listing('limit:'),
    caughtBy: ['list yields neither marks of used logins nor locks that are held'],
  },
  'lists sessions on their way to a frame': {
    create: listing('frame:'),
    caughtBy: ['list yields neither marks of used logins nor locks that are held'],
  },
  'tells of deletions alone': {
    create: broken(({ get, watch }) => ({
      watch: (changed) => watch((id) => void get(id).then((grant) => grant ?? changed(id))),
    })),
    caughtBy: [
      'watch reports a grant that another store sets, adds, ends or deletes',
      'watch reports nothing once it is stopped',
    ],
  },
  'tells of no grant that replaces another': {
    create: silent('set'),
    caughtBy: ['watch reports a grant that another store sets, adds, ends or deletes'],
  },
  'tells of no addition': {
    create: silent('add'),
    caughtBy: ['watch reports a grant that another store sets, adds, ends or deletes'],
  },
  'tells of no end': {
    create: silent('update', (grant) => 'ended' in grant && grant.ended === true),
    caughtBy: ['watch reports a grant that another store sets, adds, ends or deletes'],
  },
  'tells of no deletion': {
    create: silent('delete'),
    caughtBy: ['watch reports a grant that another store sets, adds, ends or deletes'],
  },
  'tells of grants with a version alone': {
    create: broken(({ watch }) => ({
      watch: (changed) => watch((id, version) => version === undefined || changed(id, version)),
    })),
    caughtBy: ['watch reports a grant that another store sets, adds, ends or deletes'],
  },
  'ends each watch with the first': {
    create: broken(({ watch }) => {
      const stops: (() => void)[] = [];
      return {
        watch: (changed) => {
          stops.push(watch(changed));
          return () => {
            for (const stop of stops) stop();
          };
        },
      };
    }),
    caughtBy: ['watch reports nothing once it is stopped'],
  },
  'tells what it is asked to tell no more': {
    create: broken(({ watch }) => ({
      watch: (changed) => {
        watch(changed);
        return () => undefined;
      },
    })),
    caughtBy: ['watch reports nothing once it is stopped'],
  },
  'has a lock that locks nothing': {
    create: broken(() => ({ lock: async (_id, work) => work() })),
    caughtBy: [
      'lock runs the work of 20 contenders for one id one after the other, each of them once',
      'lock excludes the work of other stores over the same storage, as of other processes',
      'lock keeps another store out while its work takes 1.5 s, or three quarters of the lease',
    ],
  },
  'has a lock that excludes its own process alone': {
    create: sharing(undefined, () => new Map()),
    lease: LEASE,
    caughtBy: [
      'lock excludes the work of other stores over the same storage, as of other processes',
      'lock keeps another store out while its work takes 1.5 s, or three quarters of the lease',
      'a holder learns the length of its lease, and that the lease is not held once another one has it',
    ],
  },
  'never says that a lock is held': {
    create: sharing(() => ({ isHeld: async () => false })),
    lease: LEASE,
    caughtBy: ['lock reports that it is held, if it hands over a lease'],
  },
  'says that every lock is held': {
    create: sharing(() => ({ isHeld: async () => true })),
    lease: LEASE,
    caughtBy: ['a holder learns the length of its lease, and that the lease is not held once another one has it'],
  },
  'says that a lock is held, whoever holds it': {
    create: sharing((leases) => ({ isHeld: async (id) => (leases.get(id)?.endsAt ?? 0) > Date.now() })),
    lease: LEASE,
    caughtBy: ['a holder learns the length of its lease, and that the lease is not held once another one has it'],
  },
  'says that its leases last longer than they do': {
    create: sharing(undefined, undefined, 2),
    lease: LEASE,
    caughtBy: ['a holder learns the length of its lease, and that the lease is not held once another one has it'],
  },
  'has a lock without a lease': {
    create: sharing((leases) => ({
      take: async (id, owner) => !leases.has(id) && leases.set(id, { owner, endsAt: 0 }).has(id),
    })),
    lease: LEASE,
    caughtBy: ['the lock of a holder that died is free again once its lease expires'],
  },
  'ends its locks sooner than it says': {
    create: sharing((leases) => ({
      take: async (id, owner) => {
        const isTaken = await rightLease(leases).take(id, owner);
        if (isTaken) leases.set(id, { owner, endsAt: Date.now() + 200 });
        return isTaken;
      },
    })),
    lease: LEASE,
    caughtBy: [
      'lock keeps another store out while its work takes 1.5 s, or three quarters of the lease',
      'a holder learns the length of its lease, and that the lease is not held once another one has it',
    ],
  },
  'lets whoever comes release its lock': {
    create: sharing((leases) => ({ release: async (id) => void leases.delete(id) })),
    lease: LEASE,
    caughtBy: ['a holder that outlives its lease does not free the lock of the next one'],
  },
  'lets waiting callers share the work of the first': {
    create: broken(({ lock }) => {
      const shared = new Map<string, Promise<unknown>>();
      return {
        lock: async (id, work) => {
          const running = shared.get(id) ?? lock(id, work).finally(() => shared.delete(id));
          shared.set(id, running);
          return JSON.parse(JSON.stringify((await running) ?? null));
        },
      };
    }),
    caughtBy: [
      'lock resolves to what its work resolves to',
      'lock runs the work of 20 contenders for one id one after the other, each of them once',
      'lock excludes the work of other stores over the same storage, as of other processes',
    ],
  },
  'reads inside a lock what was there when it began to wait': {
    create: broken(({ get, lock }) => {
      const snapshots = new Map<string, StoredGrant | undefined>();
      return {
        get: async (id) => (snapshots.has(id) ? snapshots.get(id) : get(id)),
        lock: async (id, work) => {
          const snapshot = await get(id);
          return lock(id, (lease) => {
            if (snapshot) snapshots.set(id, snapshot);
            return work(lease).finally(() => snapshots.delete(id));
          });
        },
      };
    }),
    caughtBy: ['get inside a lock reads what the holder before has written'],
  },
  'wraps the errors of work': {
    create: broken(({ lock }) => ({
      lock: (id, work) =>
        lock(id, work).catch((cause: unknown) => {
          throw new Error('locked work failed', { cause });
        }),
    })),
    caughtBy: ['lock rejects with the very error of its work, and is free afterwards'],
  },
  'has one lock for all ids': {
    create: broken(({ lock }) => ({ lock: (_id, work) => lock('all', work) })),
    caughtBy: [
      'lock of one id does not wait for that of another',
      'locks of 50 ids are held at the same time, and the store can be reached inside of all of them',
    ],
  },
  'keeps the lock after work that failed': {
    create: broken(({ lock }) => ({
      lock: (id, work) =>
        new Promise((resolve, reject) => {
          const hang = (error: unknown): Promise<never> => {
            reject(error);
            return new Promise(() => undefined);
          };
          lock(id, () => work().then(resolve, hang)).catch(reject);
        }),
    })),
    caughtBy: ['lock rejects with the very error of its work, and is free afterwards'],
  },
  'frees the lock when the grant is deleted': {
    create: broken(({ delete: remove }) => {
      const locks = new Map<string, Promise<unknown>>();
      const freed = new EventEmitter().setMaxListeners(0);
      const free = (id: string) => {
        locks.delete(id);
        freed.emit(id);
      };
      return {
        delete: async (id, version) => void (await remove(id, version).finally(() => free(id))),
        lock: async (id, work) => {
          while (locks.has(id)) await once(freed, id);
          const running = work();
          locks.set(id, running);
          return running.finally(() => {
            if (locks.get(id) === running) free(id);
          });
        },
      };
    }),
    caughtBy: [
      'lock keeps another store out while its work takes 1.5 s, or three quarters of the lease',
      'the store works as ever inside a lock, and neither set nor delete frees the lock',
    ],
  },
};

describe('a store is caught that', () => {
  for (const [mistake, { create, lease, caughtBy }] of Object.entries(mistakes)) {
    test(mistake, async () => {
      mayLeave(/#tails/);
      expect(await failures(create, { lease })).toEqual(caughtBy);
    });
  }
});

test.for<[mistake: string, check: string, finding: string]>([
  ['updates whatever the version', 'update leaves a grant of another version', 'version 0 is not stored'],
  ['deletes whatever the version', 'delete of a version removes the grant only', 'version 0 is not stored'],
  ['updates without atomicity', 'of 50 updates of one version', 'updates that resolved to true'],
  ['adds without atomicity', 'of 50 additions for one id', 'additions that resolved to true'],
  ['has a lock that locks nothing', 'lock runs the work of 20', 'contenders that worked at the same time'],
  ['lets waiting callers share the work of the first', 'lock runs the work of 20', 'works that ran'],
  ['frees the lock when the grant is deleted', 'the store works as ever inside', 'another one got the lock'],
  [
    'has a lock without a lease',
    'the lock of a holder that died is free',
    'Expected the lock to be free 5000 ms after the end of a lease of 2000 ms',
  ],
  ['lets whoever comes release its lock', 'a holder that outlives', 'a third one got the lock while the second had it'],
  ['tells of deletions alone', 'watch reports a grant', 'Expected within 20000 ms: watch reports a grant'],
  ['tells of no grant that replaces another', 'watch reports a grant', 'a grant that another store changes by set'],
  ['tells of no addition', 'watch reports a grant', 'a grant that another store changes by add'],
  ['tells of no deletion', 'watch reports a grant', 'a grant that another store changes by delete'],
  ['tells of grants with a version alone', 'watch reports a grant', 'a grant that another store changes by update'],
  ['ends each watch with the first', 'watch reports nothing', 'the one that still watches'],
  ['tells what it is asked to tell no more', 'watch reports nothing', 'the one that was stopped'],
])('a store that %s is told by the check "%s…": %s', async ([mistake, check, finding]) => {
  const { create = memoryTokenStore, lease } = mistakes[mistake] ?? {};
  const found = Object.entries(await findings(create, { lease }));
  expect(found.find(([name]) => name.startsWith(check))?.[1]).toContain(finding);
});

test('every check catches one of these mistakes', () => {
  const caught = new Set(Object.values(mistakes).flatMap(({ caughtBy }) => caughtBy));
  const checks = tokenStoreChecks(memoryTokenStore, { lease: LEASE });
  expect(checks.filter(({ name }) => !caught.has(name))).toEqual([]);
});

test('what needs the length of the lease is left out without it, and says so', () => {
  const checks = tokenStoreChecks(memoryTokenStore);
  expect(
    checks.filter(({ name }) => name.endsWith('(left out: tokenStoreChecks needs the option lease)')),
  ).toHaveLength(3);
  // @ts-expect-error: misspelt
  expect(() => tokenStoreChecks(memoryTokenStore, { leese: 1 })).toThrow(
    /^leese: is not an option of tokenStoreChecks/,
  );
  expect(() => tokenStoreChecks(memoryTokenStore, { lease: 30 })).toThrow(
    /^lease: expected a number of seconds from 0.5 to 5, got 30/,
  );
});

test('stores that cannot stand for processes fail what needs the end of a lease, and are told why', async () => {
  const store = memoryTokenStore();
  for (const create of [memoryTokenStore, () => store]) {
    const [first, second] = tokenStoreChecks(create, { lease: LEASE }).slice(-2);
    for (const check of [first, second])
      await expect(check?.run()).rejects.toThrow('Expected createStore to return a new store over the same storage');
  }
});
