import type { Mode } from './service.js';

/**
 * The protocol of docs/refresh-protocol.md as a machine of states: one grant, several processes, a store with leases,
 * and a service that rotates. Tokens are numbers: each rotation gives the next one.
 */
export interface ModelOptions {
  readonly mode: Mode;
  readonly processes: number;
  /** How many rotations, and how many faults, one history may have. */
  readonly rotations: number;
  readonly faults: number;
  /** Rules that are left out, to see what they are good for. */
  readonly without?: readonly Rule[];
}

/** The rules that keep logins alive. */
export const RULES = [
  /** A refresh runs under the store's lock. */
  'lock',
  /** Under the lock the store is read again. */
  'read again',
  /** An old lock is asked for again before a token is shown. */
  'ask again',
  /** The lock is held until the pair is saved. */
  'hold until saved',
  /** A save replaces nothing but what it was made from. */
  'compare and set',
  /** What was refused is marked, not deleted, and its successor replaces the mark. */
  'tombstone',
  /** What is older than the pair in memory is written over. */
  'write over older',
] as const;

export type Rule = (typeof RULES)[number];

/** What the store has of the grant. */
export type Record = { readonly kind: 'none' } | { readonly kind: 'live' | 'tombstone'; readonly token: number };

/** Where a process is in a refresh. */
export type Place = 'idle' | 'waiting' | 'locked' | 'ready' | 'checked' | 'sent' | 'saving' | 'refused';

/** One process. */
export interface Process {
  readonly place: Place;
  /** The token that it has seen last: its cache. 0 for none. */
  readonly known: number;
  /** The token that it is about to show, or has shown. */
  readonly shown: number;
  /** Whether what it knows is still to be saved. */
  readonly isUnsaved: boolean;
  readonly isFrozen: boolean;
  readonly isCut: boolean;
}

/** A refresh request on its way to the service, or its answer on the way back. */
export interface Message {
  readonly process: number;
  readonly token: number;
  readonly answer: number | 'refused' | undefined;
}

/** Why a login has ended though nobody has logged out. */
export type End = 'answer lost' | 'crash' | 'lease over' | 'frozen while sending' | 'failover' | 'WITHOUT NEED';

/** The number of a process that has died. */
const DEAD = -2;

/** What has happened in the past of a state. */
export interface Marks {
  readonly isLeaseOver: boolean;
  readonly isFrozenSending: boolean;
  readonly isFailedOver: boolean;
  /** A token was shown without the lock, and none of these explains it. */
  readonly isUnlocked: boolean;
}

/** All there is. Immutable. */
export interface State {
  readonly service: { readonly current: number; readonly previous: number; readonly isRevoked: boolean };
  readonly record: Record;
  /** What a failover goes back to. */
  readonly former: Record;
  /** The process that has the lease; -1 for none, -2 for one that has died. */
  readonly lease: number;
  readonly processes: readonly Process[];
  readonly messages: readonly Message[];
  readonly isLoggedOut: boolean;
  readonly faults: number;
  /** Faults of the past that explain a used token. */
  readonly marks: Marks;
  readonly end: End | undefined;
}

/** A step from one state to the next. */
export interface Transition {
  readonly name: string;
  readonly isFault: boolean;
  /** New work, which nobody has to begin. */
  readonly isOptional: boolean;
  readonly to: State;
}

/** The state after a login. */
export function initialState({ processes, faults }: ModelOptions): State {
  const idle: Process = { place: 'idle', known: 0, shown: 0, isUnsaved: false, isFrozen: false, isCut: false };
  const none: Record = { kind: 'none' };
  return {
    service: { current: 1, previous: 0, isRevoked: false },
    record: { kind: 'live', token: 1 },
    former: none,
    lease: -1,
    processes: Array.from({ length: processes }, (_, index) => (index === 0 ? { ...idle, known: 1 } : idle)),
    messages: [],
    isLoggedOut: false,
    faults,
    marks: { isLeaseOver: false, isFrozenSending: false, isFailedOver: false, isUnlocked: false },
    end: undefined,
  };
}

/** Whether the service takes a token, were it shown now. */
export function honours({ service }: State, token: number): boolean {
  return token > 0 && !service.isRevoked && (token === service.current || token === service.previous);
}

/** Whether anybody has a token that the service takes. */
export function isLiving(state: State): boolean {
  const { record, processes, messages } = state;
  return (
    (record.kind === 'live' && honours(state, record.token)) ||
    (record.kind === 'tombstone' && honours(state, record.token)) ||
    processes.some(({ known }) => honours(state, known)) ||
    messages.some(({ answer }) => typeof answer === 'number' && honours(state, answer))
  );
}

/** All steps that can be taken in a state. */
export function transitions(state: State, options: ModelOptions): readonly Transition[] {
  const found: Transition[] = [];
  const has = (rule: Rule): boolean => !options.without?.includes(rule);
  const step = (name: string, to: State, kind: 'step' | 'fault' | 'optional' = 'step'): void => {
    const paid = kind === 'fault' ? { ...to, faults: to.faults - 1 } : to;
    found.push({ name, isFault: kind === 'fault', isOptional: kind === 'optional', to: withEnd(state, paid, name) });
  };
  state.processes.forEach((process, index) => {
    if (process.isFrozen) step(`${index} goes on`, put(state, index, { isFrozen: false }));
    else processSteps({ state, process, index, has, step, options });
    if (process.isCut) step(`${index} reaches the store again`, put(state, index, { isCut: false }));
    if (state.faults > 0) processFaults(state, process, index, step);
  });
  for (const message of state.messages) serviceSteps(state, message, options, step);
  const holder = state.processes[state.lease];
  // A lease is longer than anything that a running process does under it.
  const isStuck = holder?.isCut && ['locked', 'saving', 'refused'].includes(holder.place);
  if (state.lease === DEAD || holder?.isFrozen || isStuck || holder?.place === 'idle')
    step('the lease ends', { ...state, lease: -1, marks: { ...state.marks, isLeaseOver: true } });
  if (state.faults > 0 && JSON.stringify(state.record) !== JSON.stringify(state.former) && state.former.kind !== 'none')
    step(
      'failover',
      { ...state, record: state.former, lease: -1, marks: { ...state.marks, isFailedOver: true } },
      'fault',
    );
  if (!state.isLoggedOut && !state.end)
    step('logout', { ...state, isLoggedOut: true, former: { kind: 'none' }, record: { kind: 'none' } }, 'optional');
  return found;
}

type Step = (name: string, to: State, kind?: 'step' | 'fault' | 'optional') => void;

interface ProcessStep {
  readonly state: State;
  readonly process: Process;
  readonly index: number;
  readonly has: (rule: Rule) => boolean;
  readonly step: Step;
  readonly options: ModelOptions;
}

function processSteps(all: ProcessStep): void {
  const { state, process, index, has, step, options } = all;
  const { record, lease } = state;
  const reaches = !process.isCut;
  switch (process.place) {
    case 'idle':
      if (process.isUnsaved && reaches) step(`${index} saves what it holds`, saved(all));
      else if (isOlder(record, process.known) && has('write over older') && reaches)
        step(`${index} writes over what is older`, saved(all));
      if (state.service.current <= options.rotations && reaches && !state.isLoggedOut && !state.end)
        step(`${index} has a request`, put(state, index, { place: 'waiting' }), 'optional');
      break;
    case 'waiting':
      if (!has('lock')) step(`${index} goes on without a lock`, put(state, index, { place: 'locked' }));
      else if (lease === -1 && reaches)
        step(`${index} gets the lock`, put({ ...state, lease: index }, index, { place: 'locked' }));
      break;
    case 'locked':
      if (reaches) step(`${index} reads`, looked(all));
      break;
    case 'ready':
      if (!has('lock') || !has('ask again') || lease === index)
        step(`${index} is sure of its lock`, put(state, index, { place: 'checked' }));
      else step(`${index} asks for its lock again`, put(state, index, { place: 'waiting' }));
      break;
    case 'checked': {
      const message: Message = { process: index, token: process.shown, answer: undefined };
      const isExplained = state.lease === index || state.marks.isFrozenSending || state.marks.isFailedOver;
      const marks = { ...state.marks, isUnlocked: state.marks.isUnlocked || !isExplained };
      const sent = { ...state, marks, messages: [...state.messages, message] };
      step(`${index} shows ${process.shown}`, put(sent, index, { place: 'sent' }));
      break;
    }
    case 'sent':
      for (const message of state.messages)
        if (message.process === index && message.answer !== undefined)
          step(`${index} is answered`, answered(all, message));
      break;
    case 'saving':
      if (reaches) step(`${index} saves`, saved(all));
      // The process takes its pair for unsaved, and gives the lock back after some tries.
      if (reaches && state.faults > 0)
        step(`${index} saves, and is not answered`, put(saved(all), index, { isUnsaved: true }), 'fault');
      break;
    case 'refused':
      if (reaches) step(`${index} gives up ${process.shown}`, givenUp(all));
      break;
  }
}

/** Under the lock a process looks again, and goes on with what it finds. */
function looked({ state, process, index, has }: ProcessStep): State {
  const { record } = state;
  const isOther = record.kind === 'live' && record.token > process.known;
  if (!has('read again') && process.known > 0) return put(state, index, { place: 'ready', shown: process.known });
  if (isOlder(record, process.known) && has('write over older'))
    return put(state, index, { place: 'saving', isUnsaved: true });
  // What is still to be saved is the newest pair, unless the store has had it already.
  if (isOlder(record, process.known) && process.isUnsaved)
    return put(state, index, { place: 'ready', shown: process.known });
  if (record.kind !== 'live') return released(put(state, index, { place: 'idle', known: 0, isUnsaved: false }), index);
  // Somebody else was faster: there is nothing to do.
  if (isOther && process.known > 0)
    return released(put(state, index, { place: 'idle', known: record.token, isUnsaved: false }), index);
  return put(state, index, { place: 'ready', known: record.token, shown: record.token });
}

function answered({ state, process, index, has }: ProcessStep, message: Message): State {
  const taken = { ...state, messages: state.messages.filter((other) => other !== message) };
  if (typeof message.answer !== 'number') return put(taken, index, { place: 'refused' });
  const next = put(taken, index, { place: 'saving', known: Math.max(message.answer, process.known), isUnsaved: true });
  return has('hold until saved') ? next : released(next, index);
}

/** A save: it replaces what it was made from, or finds that there is nothing to replace. */
function saved({ state, process, index, has }: ProcessStep): State {
  const { record } = state;
  const mark = { place: 'idle', isUnsaved: false } as const;
  const canReplace = record.kind !== 'none' && record.token < process.known;
  if (has('compare and set') ? !canReplace : false) {
    const known = record.kind === 'live' ? record.token : 0;
    return released(
      put(state, index, { ...mark, known: Math.max(known, record.kind === 'none' ? 0 : process.known) }),
      index,
    );
  }
  return released(
    put({ ...state, former: record, record: { kind: 'live', token: process.known } }, index, mark),
    index,
  );
}

/** A refused token is given up, unless the store has another one by now. */
function givenUp({ state, process, index, has }: ProcessStep): State {
  const { record } = state;
  const gone = released(put(state, index, { place: 'idle', known: 0, isUnsaved: false }), index);
  if (record.kind === 'live' && record.token !== process.shown)
    return released(put(state, index, { place: 'idle', known: record.token, isUnsaved: false }), index);
  if (record.kind === 'none') return gone;
  if (!has('tombstone')) return { ...gone, former: record, record: { kind: 'none' } };
  return { ...gone, former: record, record: { kind: 'tombstone', token: process.shown } };
}

function serviceSteps(state: State, message: Message, { mode }: ModelOptions, step: Step): void {
  const { service } = state;
  const to = (answer: Message['answer'], now = service): State => ({
    ...state,
    service: now,
    messages: state.messages.map((other) => (other === message ? { ...message, answer } : other)),
  });
  const without: State = { ...state, messages: state.messages.filter((other) => other !== message) };
  const failed = (one: State): State => {
    const sender = one.processes[message.process];
    return sender?.place === 'sent' ? released(put(one, message.process, { place: 'idle' }), message.process) : one;
  };
  if (message.answer === undefined) {
    if (honours(state, message.token)) {
      const current = service.current + 1;
      step(
        'the service rotates',
        to(current, { ...service, current, previous: mode === 'grace' ? service.current : 0 }),
      );
    } else
      step('the service refuses', to('refused', { ...service, isRevoked: service.isRevoked || mode === 'revoke' }));
    if (state.faults > 0) step('a request is lost', failed(without), 'fault');
  } else if (state.processes[message.process]?.place !== 'sent') step('an answer finds nobody', without);
  else if (state.faults > 0) step('an answer is lost', failed(without), 'fault');
}

function processFaults(state: State, process: Process, index: number, step: Step): void {
  if (process.place === 'idle' && !process.isUnsaved) return;
  if (!process.isFrozen) {
    const marks = { ...state.marks, isFrozenSending: state.marks.isFrozenSending || process.place === 'checked' };
    step(`${index} stands still`, put({ ...state, marks }, index, { isFrozen: true }), 'fault');
  }
  if (!process.isCut) step(`${index} is cut off from the store`, put(state, index, { isCut: true }), 'fault');
  const empty: Process = { place: 'idle', known: 0, shown: 0, isUnsaved: false, isFrozen: false, isCut: false };
  // Another process takes its place: neither the lease nor an answer is for that one.
  const lease = state.lease === index ? DEAD : state.lease;
  const messages = state.messages.map((message) =>
    message.process === index ? { ...message, process: DEAD } : message,
  );
  step(`${index} dies`, put({ ...state, lease, messages }, index, empty), 'fault');
}

/** Whether the store has a pair, or its mark, that is older than the one in memory. */
function isOlder(record: Record, known: number): boolean {
  return record.kind !== 'none' && record.token < known;
}

function put(state: State, index: number, change: Partial<Process>): State {
  return {
    ...state,
    processes: state.processes.map((process, at) => (at === index ? { ...process, ...change } : process)),
  };
}

function released(state: State, index: number): State {
  return state.lease === index ? { ...state, lease: -1 } : state;
}

/** Notes the end of a login, and what it came of. */
function withEnd(before: State, after: State, name: string): State {
  if (after.end || after.isLoggedOut || isLiving(after)) return after;
  const { isLeaseOver, isFrozenSending, isFailedOver } = after.marks;
  const isReuse = after.service.isRevoked && !before.service.isRevoked;
  const reuse: End = isFrozenSending
    ? 'frozen while sending'
    : isFailedOver
      ? 'failover'
      : isLeaseOver
        ? 'lease over'
        : 'WITHOUT NEED';
  const end: End = isReuse
    ? reuse
    : name.endsWith('dies')
      ? 'crash'
      : name.startsWith('an answer')
        ? 'answer lost'
        : name === 'failover'
          ? 'failover'
          : 'WITHOUT NEED';
  return { ...after, end };
}
