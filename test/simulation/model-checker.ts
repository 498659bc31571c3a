import {
  honours,
  initialState,
  isLiving,
  type ModelOptions,
  type State,
  type Transition,
  transitions,
} from './model.js';

/** What the search of all states has found. */
export interface ModelReport {
  readonly states: number;
  /** The first history that breaks a property, step by step. */
  readonly violation: { readonly property: string; readonly history: readonly string[] } | undefined;
  /** How logins have ended, by reason. */
  readonly ends: readonly string[];
}

/** A state, and how it was reached first. */
interface Visit {
  readonly state: State;
  readonly from: Visit | undefined;
  readonly by: string;
  /** The states after it that need neither a fault nor new work. */
  readonly next: Visit[];
  isOver?: boolean;
}

/** Visits every state that can be reached, in order of distance, and checks each. */
export function checkModel(options: ModelOptions): ModelReport {
  const start: Visit = { state: initialState(options), from: undefined, by: 'login', next: [] };
  const visits = new Map([[keyOf(start.state), start]]);
  const ends = new Set<string>();
  for (const visit of visits.values()) {
    if (visit.state.end) ends.add(visit.state.end);
    const broken = brokenSafety(visit.state);
    if (broken) return report(visits.size, ends, broken, visit);
    for (const transition of transitions(visit.state, options)) {
      const next = reach(visits, visit, transition);
      if (!transition.isFault && !transition.isOptional) visit.next.push(next);
    }
  }
  for (const visit of visits.values()) {
    const stuck = brokenLiveness(visit);
    if (stuck) return report(visits.size, ends, stuck.property, stuck.visit);
  }
  return report(visits.size, ends, undefined, start);
}

function reach(visits: Map<string, Visit>, from: Visit, { to, name }: Transition): Visit {
  const key = keyOf(to);
  const known = visits.get(key);
  if (known) return known;
  const visit: Visit = { state: to, from, by: name, next: [] };
  visits.set(key, visit);
  return visit;
}

/** Safety: what must hold in each state. */
function brokenSafety({ messages, processes, marks, end, isLoggedOut, record }: State): string | undefined {
  const isExplained = marks.isLeaseOver || marks.isFrozenSending || marks.isFailedOver;
  const asking = messages.filter(({ answer, process }) => answer === undefined && processes[process]?.place === 'sent');
  if (asking.length > 1 && !isExplained) return 'two token requests are under way';
  if (marks.isUnlocked) return 'a token is shown without the lock';
  if (end === 'WITHOUT NEED') return 'a grant is given up that the service honours';
  if (isLoggedOut && record.kind === 'live' && !marks.isFailedOver) return 'what was logged out has come back';
  return undefined;
}

/** Liveness: without further faults and new work everything ends, and the newest pair is in the store. */
function brokenLiveness(start: Visit): { readonly property: string; readonly visit: Visit } | undefined {
  const path: { readonly visit: Visit; at: number }[] = [{ visit: start, at: 0 }];
  const open = new Set([start]);
  for (let top = path.at(-1); top; top = path.at(-1)) {
    const { visit } = top;
    const next = visit.isOver ? undefined : visit.next[top.at];
    top.at += 1;
    if (next && open.has(next)) return { property: 'a refresh goes round in circles', visit };
    if (next) {
      if (next.isOver) continue;
      open.add(next);
      path.push({ visit: next, at: 0 });
      continue;
    }
    const broken = visit.next.length === 0 ? brokenRest(visit.state) : undefined;
    if (broken) return { property: broken, visit };
    visit.isOver = true;
    open.delete(visit);
    path.pop();
  }
  return undefined;
}

/** What must hold where nothing is left to do. */
function brokenRest(state: State): string | undefined {
  const { processes, messages, record, isLoggedOut, end, lease } = state;
  if (processes.some(({ place }) => place !== 'idle')) return 'a process waits for ever';
  if (messages.length > 0 || lease !== -1) return 'something is left';
  if (isLoggedOut || end) return undefined;
  if (!isLiving(state)) return 'a grant is given up that the service honours';
  return record.kind === 'live' && honours(state, record.token) ? undefined : 'the newest pair is not in the store';
}

function report(states: number, ends: Set<string>, property: string | undefined, visit: Visit): ModelReport {
  const history: string[] = [];
  for (let at: Visit | undefined = visit; at; at = at.from) history.unshift(at.by);
  return { states, ends: [...ends].sort(), violation: property === undefined ? undefined : { property, history } };
}

function keyOf(state: State): string {
  return JSON.stringify(state);
}
