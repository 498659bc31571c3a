import type { TrialResult } from './trial.js';

/** A class of findings: how often, and how to see one. */
export interface Finding {
  count: number;
  readonly example: string;
  /** All of them, where they are asked for. */
  readonly examples: string[];
}

/** What many trials have shown together. Plain data, so that threads can hand it over. */
export interface Tally {
  trials: number;
  events: number;
  reuses: number;
  slowestMs: number;
  /** Trials with a violation. */
  failed: number;
  /** Differs as soon as one trial has gone otherwise: the sum of the digests of all trials. */
  digest: number;
  /** By mode, invariant and what happened. */
  readonly violations: Record<string, Finding>;
  /** Logins that nobody could have kept, by mode and reason. */
  readonly losses: Record<string, Finding>;
}

export function emptyTally(): Tally {
  return { trials: 0, events: 0, reuses: 0, slowestMs: 0, failed: 0, digest: 0, violations: {}, losses: {} };
}

/** Adds a trial. @param example The options that show it again. */
export function count(tally: Tally, mode: string, result: TrialResult, example: string): void {
  tally.trials += 1;
  tally.events += result.events;
  tally.reuses += result.reuses;
  tally.slowestMs = Math.max(tally.slowestMs, result.slowestMs);
  tally.failed += result.violations.length > 0 ? 1 : 0;
  tally.digest = (tally.digest + result.digest) >>> 0;
  const classes = new Set(
    result.violations.map(({ invariant, detail }) => `${mode}  ${invariant}: ${general(detail)}`),
  );
  for (const name of classes) add(tally.violations, name, { count: 1, example, examples: [example] });
  for (const loss of result.losses) add(tally.losses, `${mode}  ${loss}`, { count: 1, example, examples: [example] });
}

/** Adds one tally to another. */
export function merge(into: Tally, from: Tally): void {
  into.trials += from.trials;
  into.events += from.events;
  into.reuses += from.reuses;
  into.slowestMs = Math.max(into.slowestMs, from.slowestMs);
  into.failed += from.failed;
  into.digest = (into.digest + from.digest) >>> 0;
  for (const [name, more] of Object.entries(from.violations)) add(into.violations, name, more);
  for (const [name, more] of Object.entries(from.losses)) add(into.losses, name, more);
}

/** Returns a tally as lines of text. */
export function describe(tally: Tally, isList = false): string {
  const { trials, events, failed, reuses, slowestMs } = tally;
  const head = `${number(trials)} trials, ${number(events)} events: ${number(failed)} trials with a violation; ${number(reuses)} used tokens shown; slowest request ${(slowestMs / 1000).toFixed(1)} s`;
  const rows = (title: string, findings: Record<string, Finding>) => [
    title,
    ...Object.entries(findings)
      .sort(([one], [other]) => (one < other ? -1 : 1))
      .flatMap(([name, finding]) => [
        `${number(finding.count).padStart(9)}  ${name}   (${finding.example})`,
        ...(isList ? finding.examples.map((example) => `           ${example}`) : []),
      ]),
  ];
  return [
    head,
    ...rows('violations:', tally.violations),
    ...rows('logins that nobody could have kept:', tally.losses),
  ].join('\n');
}

/** Most examples of one class that are kept. */
const MAX_EXAMPLES = 100;

function add(findings: Record<string, Finding>, name: string, more: Finding): void {
  const known = findings[name];
  if (known) {
    known.count += more.count;
    known.examples.push(...more.examples.slice(0, MAX_EXAMPLES - known.examples.length));
  } else findings[name] = { ...more, examples: [...more.examples] };
}

/** Leaves out which process and which token it was. */
function general(detail: string): string {
  return detail
    .replace(/\b[A-D]\d*\b/g, 'a process')
    .replace(/\b(?:[aA]da|ben)\b/g, 'a user')
    .replace(/\d+(?:\.\d+)?/g, 'n');
}

function number(value: number): string {
  return value.toLocaleString('en');
}
