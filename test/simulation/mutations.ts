import type { Parts } from './application.js';
import type { Package } from './environment.js';
import type { Fault } from './faults.js';
import { type Mode, tokensIn } from './service.js';
import type { StoreClient } from './store-client.js';

type Options = ConstructorParameters<Package['Strategy']>[0];
type Handler = Parameters<Parts['dispatch']>[1];

/** What a process has in place of its own store or dispatcher. */
interface Replaced {
  readonly store?: object;
  readonly dispatch?: Parts['dispatch'];
}

/** A deliberate breakage, as a fault of the package would look like to its store and its service. */
export interface Mutation {
  readonly name: string;
  readonly parts: (parts: Parts) => Replaced;
  readonly options?: Partial<Options>;
  /** The fault that shows it, at one call of the scenario `brief`. Default: random histories and all single faults are tried. */
  readonly shownBy?: Fault;
  /** What the service does then. Default: `revoke`. */
  readonly shownIn?: Mode;
}

/** Each of them breaks a rule of the protocol, and has to be found. */
export const MUTATIONS: readonly Mutation[] = [
  ofStore('no lock', () => ({ lock: undefined })),
  ofStore('the lock is asked for, and not waited for', (store) => ({
    lock: async (id: string, work: () => Promise<unknown>) => {
      void store.lock(id, async () => undefined).catch(() => undefined);
      return await work();
    },
  })),
  ofStore('work goes on where the lock cannot be had', (store, { world }) => ({
    lock: async (id: string, work: () => Promise<unknown>) => {
      if (world.store.lease(id)) return await work();
      return await store.lock(id, work);
    },
  })),
  {
    ...ofStore('a lease that the store no longer has counts as held', (store) => ({
      lock: (id: string, work: (lease: object) => Promise<unknown>) =>
        store.lock(id, (lease) => {
          const isHeld = () => lease?.isHeld().then(() => true);
          return work({ ...lease, isHeld });
        }),
    })),
    shownBy: { kind: 'freeze', way: 'leave', clocks: 'pause', ms: 31_000 },
  },
  ofStore('one lock for each process', (store, { machine }) => ({
    lock: (id: string, work: () => Promise<unknown>) => store.lock(`${machine.name}:${id}`, work),
  })),
  ofStore('the lock is given back before the refresh', (store) => ({
    lock: async (id: string, work: () => Promise<unknown>) => {
      await store.lock(id, async () => undefined);
      return await work();
    },
  })),
  {
    name: 'the lock is given back before the save',
    parts: ({ store, dispatch }) => {
      let giveBack = (): void => undefined;
      const lock = async (id: string, work: () => Promise<unknown>): Promise<unknown> => {
        const answered = new Promise<void>((resolve) => {
          giveBack = resolve;
        });
        let result: Promise<unknown> | undefined;
        await store.lock(id, async () => {
          result = work();
          await Promise.race([answered, result.catch(() => undefined)]);
        });
        return await result;
      };
      const early: Parts['dispatch'] = (options, handler) =>
        dispatch(options, isRefresh(options.body) ? watched(handler, () => giveBack()) : handler);
      return { store: { ...store, lock }, dispatch: early };
    },
  },
  ofStore('no look again under the lock', (store) => {
    const seen = new Map<string, Awaited<ReturnType<StoreClient['get']>>>();
    let isLocked = false;
    return {
      get: async (id: string) => {
        const known = seen.get(id);
        if (isLocked && known) return known;
        const found = await store.get(id);
        seen.set(id, found);
        return found;
      },
      lock: (id: string, work: () => Promise<unknown>) =>
        store.lock(id, async () => {
          isLocked = true;
          return await work().finally(() => {
            isLocked = false;
          });
        }),
    };
  }),
  ofStore('set in place of update', (store) => ({
    update: async (id: string, grant: never) => {
      await store.set(id, grant);
      return true;
    },
  })),
  ofStore('what the store refuses to update is set', (store) => ({
    update: async (id: string, grant: never, version: number) => {
      if (!(await store.update(id, grant, version))) await store.set(id, grant);
      return true;
    },
  })),
  ofStore('the save is forgotten', () => ({ update: async () => true })),
  ofStore('a save that failed counts as done', (store) => ({
    update: (id: string, grant: never, version: number) => store.update(id, grant, version).catch(() => true),
  })),
  ofStore('a look that failed counts as no grant', (store) => ({
    get: (id: string) => store.get(id).catch(() => undefined),
  })),
  ofStore('a logout is remembered by its own process alone', (store) => {
    const deleted = new Set<string>();
    return {
      delete: async (id: string) => void deleted.add(id),
      get: async (id: string) => (deleted.has(id) ? undefined : await store.get(id)),
      set: (id: string, grant: Parameters<StoreClient['set']>[1]) => {
        deleted.delete(id);
        return store.set(id, grant);
      },
    };
  }),
  {
    name: 'answers of the token endpoint are mixed up',
    parts: ({ dispatch, world }) => {
      let former: Buffer | undefined;
      return {
        dispatch: (options, handler) => {
          if (!isRefresh(options.body)) return dispatch(options, handler);
          const mixed = {
            ...forwarded(handler),
            onResponseData: (controller: never, chunk: Buffer) => {
              const isOther = former !== undefined && ownerOf(world, former) !== ownerOf(world, chunk);
              handler.onResponseData?.(controller, isOther && former ? former : chunk);
              former = chunk;
            },
          };
          return dispatch(options, mixed as Handler);
        },
      };
    },
  },
  ofService('every error of the token endpoint ends the grant', (handler) =>
    refusing(handler, (status) => status >= 400),
  ),
  ofService('a connection that broke ends the grant', (handler, { machine }) => ({
    ...forwarded(handler),
    onResponseError: (controller: never) => machine.setTimer(() => answer(handler, controller, 400, REFUSAL), 1),
  })),
  {
    name: 'each refresh is sent twice',
    parts: ({ dispatch }) => ({
      dispatch: (options, handler) => {
        if (isRefresh(options.body)) dispatch(options, {});
        return dispatch(options, handler);
      },
    }),
  },
  {
    name: 'a refresh token whose answer was lost is sent again when the grace is over',
    parts: ({ dispatch, world }) => ({
      dispatch: (options, handler) => {
        const token = isRefresh(options.body) ? tokensIn(String(options.body))[0] : undefined;
        const family = token && world.service.family(token.family);
        const isInGrace = token?.serial === family?.previous && world.scheduler.now < (family?.previousUntil ?? 0);
        return (token && isInGrace) || dispatch(options, handler);
      },
    }),
    shownBy: { kind: 'reset', effect: 'done', ms: 0 },
    shownIn: 'grace',
  },
  ofService('the new refresh token is not kept', (handler) => ({
    ...forwarded(handler),
    onResponseData: (controller: never, chunk: Buffer) => {
      const { refresh_token: _, ...rest } = JSON.parse(String(chunk).startsWith('{') ? String(chunk) : '{}');
      handler.onResponseData?.(controller, Buffer.from(JSON.stringify(rest)));
    },
  })),
  {
    name: 'no limit of time',
    parts: ({ machine }) => {
      const setTimer = machine.setTimer.bind(machine);
      machine.setTimer = (run, ms) => setTimer(ms >= 1000 ? () => undefined : run, ms);
      return {};
    },
  },
  { name: 'a limit of time that is too short', parts: () => ({}), options: { timeout: 1_000 } },
  {
    name: 'timers that end nothing are left',
    parts: ({ machine }) => {
      machine.clearTimer = () => undefined;
      const again = (): void => void machine.setTimer(again, 30_000);
      again();
      return {};
    },
  },
  ofStore('a rejection that nobody handles', (store) => ({
    get: (id: string) => {
      void Promise.reject(new Error('nobody handles this'));
      return store.get(id);
    },
  })),
  { name: 'the cache is believed for an hour', parts: () => ({}), options: { cache: { ttl: 3600 } } },
];

const REFUSAL = { error: 'invalid_grant' };

function ofStore(name: string, broken: (store: StoreClient, parts: Parts) => object): Mutation {
  return { name, parts: (parts) => ({ store: { ...parts.store, ...broken(parts.store, parts) } }) };
}

function ofService(name: string, broken: (handler: Handler, parts: Parts) => object): Mutation {
  return {
    name,
    parts: (parts) => ({
      dispatch: (options, handler) =>
        parts.dispatch(options, isRefresh(options.body) ? (broken(handler, parts) as Handler) : handler),
    }),
  };
}

function isRefresh(body: unknown): boolean {
  return typeof body === 'string' && body.includes('"refresh_token"');
}

const EVENTS = ['onRequestStart', 'onResponseStart', 'onResponseData', 'onResponseEnd', 'onResponseError'] as const;

/** All that a dispatcher tells goes on to `handler`. */
function forwarded(handler: Handler): Required<Pick<Handler, (typeof EVENTS)[number]>> {
  const forward =
    (name: string) =>
    (...parameters: unknown[]) =>
      Reflect.get(handler, name)?.call(handler, ...parameters);
  return Object.fromEntries(EVENTS.map((name) => [name, forward(name)])) as never;
}

function watched(handler: Handler, ended: () => void): Handler {
  const all = forwarded(handler);
  return {
    ...all,
    onResponseEnd: (...parameters) => {
      all.onResponseEnd(...parameters);
      ended();
    },
  };
}

/** Puts a refusal in place of an answer. */
function refusing(handler: Handler, isRefused: (status: number) => boolean): object {
  let isBad = false;
  const all = forwarded(handler);
  return {
    ...all,
    onResponseStart: (controller: never, status: number, headers: never, message: string) => {
      isBad = isRefused(status);
      if (!isBad) all.onResponseStart(controller, status, headers, message);
    },
    onResponseData: (controller: never, chunk: never) => {
      if (!isBad) all.onResponseData(controller, chunk);
    },
    onResponseEnd: (controller: never, trailers: never) => {
      if (isBad) answer(handler, controller, 400, REFUSAL);
      else all.onResponseEnd(controller, trailers);
    },
  };
}

function answer(handler: Handler, controller: never, status: number, body: object): void {
  handler.onResponseStart?.(controller, status, { 'content-type': 'application/json' }, '');
  handler.onResponseData?.(controller, Buffer.from(JSON.stringify(body)));
  handler.onResponseEnd?.(controller, {});
}

function ownerOf(world: Parts['world'], chunk: Buffer): string | undefined {
  return world.service.family(tokensIn(String(chunk))[0]?.family ?? -1)?.user;
}
