import { readFileSync } from 'node:fs';
import { setTimeout as startTimer } from 'node:timers';
import { afterAll, afterEach, beforeEach, expect, onTestFinished } from 'vitest';
import { awaited } from './awaited.js';
import { allowed, mayLeave } from './may-leave.js';

/** Tests after which nothing of the package may be left: it would be paid for until the process ends. */
const CHECKED = /\/test\/(?:api|embedded|flow|grants|http|login|oauth|refresh|session|stores)\//;

/** Fields and constants that keep their entries on purpose: caches, settings, and what was learned of a service or a developer's mistake. */
const KEPT =
  /^src\/emulator| .*(?:byStore|cache|enterprise|failed|grants|listeners|loginPaths|logouts|messages|pauses|refused|seen|serviceOfGrant|statements|strategyNames|told|used|warned|warnings).*=/i;

/**
 * How often the event loop turns, five milliseconds apart, for work that goes on behind a test: a process that got no time has
 * no turns. Longer than the package waits for a database or a service, which ends such work by itself; shorter than a lease.
 */
const PATIENCE_TURNS = 2_400;

type Collection = Map<unknown, unknown> | Set<unknown>;

/** What was installed by the first file of this process, before it loaded the package. Files share what is loaded. */
interface Watch {
  /** Collections that outlive a call, with where they are declared. */
  readonly collections: [WeakRef<Collection>, string][];
  readonly timers: Map<NodeJS.Timeout, string>;
  readonly listeners: Map<AbortSignal, Map<unknown, string>>;
}

/** Something that is there: an entry of a collection, a timer, or a listener of a signal. */
interface Thing {
  readonly owner: object;
  readonly key: unknown;
  readonly what: string;
}

const WATCH = Symbol.for('what the package leaves behind');
const watch: Watch = (Reflect.get(globalThis, WATCH) as Watch | undefined) ?? install();

beforeEach(({ task }) => {
  mayLeave(undefined);
  if (!CHECKED.test(expect.getState().testPath ?? '')) return;
  watch.collections.splice(0, Infinity, ...watch.collections.filter(([reference]) => reference.deref()));
  const before = new Map<object, Set<unknown>>();
  for (const { owner, key } of things()) before.set(owner, (before.get(owner) ?? new Set()).add(key));
  // Runs after all other hooks: what they close is closed then.
  onTestFinished(async () => {
    if (task.result?.state === 'fail') return;
    const left = () =>
      things().flatMap(({ owner, key, what }) => (before.get(owner)?.has(key) || allowed()?.test(what) ? [] : what));
    for (let turn = 0; turn < PATIENCE_TURNS && left().length > 0; turn += 1) {
      await new Promise((resolve) => startTimer(resolve, 5));
    }
    expect(left(), 'what the package has left behind').toEqual([]);
  });
});

// Left open, it would be refused a callback URL that a later file of this process has too.
const openBefore = openCallbacks();
afterAll(() => {
  // What a guide shows is an application, whose strategies live as long as it does.
  if (/guides?\//.test(expect.getState().testPath ?? '')) return;
  expect(openCallbacks(), 'callback URLs of strategies that this file has left open').toEqual(openBefore);
});

afterEach(({ task }) => {
  const [error] = task.result?.errors ?? [];
  if (!error || !/timed out/i.test(error.message)) return;
  const underWay = [...awaited, ...things().map(({ what }) => what)];
  error.message += `\nAwaited, or still under way:\n  ${[...new Set(underWay)].join('\n  ')}`;
});

function things(): Thing[] {
  const entries = watch.collections.flatMap(([reference, place]) => {
    const owner = reference.deref();
    if (!owner?.size) return [];
    return [...owner.entries()].flatMap(([key, entry]) =>
      isInUse(entry) ? { owner, key, what: `entry of ${place}` } : [],
    );
  });
  const timers = [...watch.timers].flatMap(([owner, place]) =>
    owner.hasRef() ? { owner, key: undefined, what: `timer of ${place}` } : [],
  );
  const listeners = [...watch.listeners].flatMap(([owner, places]) =>
    owner.aborted ? [] : [...places].map(([key, place]) => ({ owner, key, what: `listener of ${place}` })),
  );
  return [...entries, ...timers, ...listeners];
}

function openCallbacks(): unknown[] {
  return things().flatMap(({ key, what }) => (what.includes('strategiesAt') ? [key] : []));
}

/** Returns false for the slots of an account of which none is taken: they are kept for their limit. */
function isInUse(entry: unknown): boolean {
  const parts: unknown[] = [entry, ...Object.values(Object(entry))];
  const running = parts.map((part) => Reflect.get(Object(part), 'running')).find((each) => typeof each === 'number');
  return running === undefined || running > 0;
}

function install(): Watch {
  const installed: Watch = { collections: [], timers: new Map(), listeners: new Map() };
  Object.assign(globalThis, {
    [WATCH]: installed,
    Map: watchCollections(Map, installed),
    Set: watchCollections(Set, installed),
    setTimeout: watchTimers(installed),
  });
  watchListeners(installed);
  return installed;
}

function watchCollections<C extends MapConstructor | SetConstructor>(Collection: C, { collections }: Watch): C {
  return new Proxy(Collection, {
    construct: function construct(target, given, newTarget): Collection {
      const collection: Collection = Reflect.construct(target, given, newTarget);
      if (given.length > 0) return collection;
      const place = placeOf(construct, (name) => name === null || /^new |initializer/.test(name));
      if (place && !KEPT.test(place)) collections.push([new WeakRef(collection), place]);
      return collection;
    },
  });
}

function watchTimers({ timers }: Watch): typeof setTimeout {
  const { setTimeout: start, clearTimeout: clear } = globalThis;
  globalThis.clearTimeout = (timer) => {
    timers.delete(timer as NodeJS.Timeout);
    clear(timer);
  };
  const startWatched = (run: (...given: unknown[]) => void, ms?: number, ...given: unknown[]) => {
    const timer = start(() => {
      timers.delete(timer);
      run(...given);
    }, ms);
    const place = placeOf(startWatched);
    if (place) timers.set(timer, place);
    return timer;
  };
  return Object.assign(startWatched, start);
}

function watchListeners({ listeners }: Watch): void {
  const { addEventListener, removeEventListener } = EventTarget.prototype;
  EventTarget.prototype.addEventListener = function add(type, listener, options) {
    addEventListener.call(this, type, listener, options);
    const place = this instanceof AbortSignal ? placeOf(add) : undefined;
    if (!place) return;
    const ofSignal = listeners.get(this as AbortSignal) ?? new Map<unknown, string>();
    listeners.set(this as AbortSignal, ofSignal.set(listener, place));
  };
  EventTarget.prototype.removeEventListener = function remove(type, listener, options) {
    removeEventListener.call(this, type, listener, options);
    const ofSignal = listeners.get(this as AbortSignal);
    if (ofSignal?.delete(listener) && ofSignal.size === 0) listeners.delete(this as AbortSignal);
  };
}

const places = new Map<string, string>();

/** A function of waiting.ts runs a timer for another part of the package, which stands above it. */
const MAX_FRAMES = 8;

/** Returns file and text of the line of the package that has called a function; `undefined` if it is another's, or in another function. */
function placeOf(called: object, isWanted: (name: string | null) => boolean = () => true): string | undefined {
  const { prepareStackTrace, stackTraceLimit } = Error;
  const trace: { stack?: NodeJS.CallSite[] | string } = {};
  Error.stackTraceLimit = 1;
  Error.prepareStackTrace = (_, sites) => sites;
  const capture = () => Error.captureStackTrace(trace, called as () => void) ?? trace;
  try {
    capture();
    const [site] = trace.stack as NodeJS.CallSite[];
    if (!isOfPackage(site) || !isWanted(site.getFunctionName())) return undefined;
    let [key, index] = [keyOf(site), 0];
    if (key.includes('/src/waiting.')) {
      Error.stackTraceLimit = MAX_FRAMES;
      capture();
      const sites = trace.stack as NodeJS.CallSite[];
      index = sites.findIndex((each) => isOfPackage(each) && !keyOf(each).includes('/src/waiting.'));
      key += ` ${index < 0 ? '' : keyOf(sites[index] as NodeJS.CallSite)}`;
    }
    const known = places.get(key);
    if (known !== undefined) return known;
    // Formatted by Vitest, they are the places in the sources.
    Error.prepareStackTrace = prepareStackTrace;
    Error.stackTraceLimit = MAX_FRAMES;
    const frames = String(capture().stack)
      .split('\n')
      .filter((line) => /^\s+at /.test(line));
    const place = [0, ...(index > 0 ? [index] : [])].map((each) => lineOf(frames[each] ?? '')).join(' for ');
    places.set(key, place);
    return place;
  } finally {
    Object.assign(Error, { prepareStackTrace, stackTraceLimit });
  }
}

function isOfPackage(site: NodeJS.CallSite | undefined): site is NodeJS.CallSite {
  const file = site?.getFileName();
  return Boolean(file?.includes('/src/') && !file.includes('/node_modules/'));
}

const keyOf = (site: NodeJS.CallSite): string =>
  `${site.getFileName()}:${site.getLineNumber()}:${site.getColumnNumber()}`;

/** Returns the line of a source that a line of a stack trace is about. */
function lineOf(frame: string): string {
  const [, file = '', line = 0] = /(?:file:\/\/)?([^\s(]+):(\d+):\d+\)?$/.exec(frame) ?? [];
  const text = readFileSync(file, 'utf8').split('\n')[Number(line) - 1];
  return `${file.replace(/^.*\/src\//, 'src/')}:${line} ${text?.trim()}`;
}
