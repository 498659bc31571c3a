import type { Mode } from './service.js';
import type { TrialResult } from './trial.js';

/** A class of findings: how often, and how to see one. */
export interface Finding {
  count: number;
  readonly example: string;
  /** All of them, where they are asked for. */
  readonly examples: string[];
}

/** What the trials of one mode have shown. */
export interface ModeTally {
  trials: number;
  /** Used refresh tokens that were shown. */
  reuses: number;
  /** Trials with a violation. */
  failed: number;
  /** Trials with a login that nobody could have kept. */
  lost: number;
}

/** What many trials have shown together. Plain data, so that threads can hand it over. */
export interface Tally {
  /** By mode. */
  readonly modes: Record<string, ModeTally>;
  /** Trials that were played: one may stand for several modes. */
  played: number;
  /** Of the trials that were played. */
  events: number;
  slowestMs: number;
  /** Differs as soon as one trial has gone otherwise: the sum of the digests of all trials. */
  digest: number;
  /** By mode, invariant and what happened. */
  readonly violations: Record<string, Finding>;
  /** Logins that nobody could have kept, by mode and reason. */
  readonly losses: Record<string, Finding>;
}

export function emptyTally(): Tally {
  return { modes: {}, played: 0, events: 0, slowestMs: 0, digest: 0, violations: {}, losses: {} };
}

/** Adds a trial that stands for these modes. @param exampleOf Returns the options that show it again. */
export function count(
  tally: Tally,
  modes: readonly Mode[],
  result: TrialResult,
  exampleOf: (mode: Mode) => string,
): void {
  tally.played += 1;
  tally.events += result.events;
  tally.slowestMs = Math.max(tally.slowestMs, result.slowestMs);
  const failed = result.violations.length > 0 ? 1 : 0;
  const lost = result.losses.length > 0 ? 1 : 0;
  for (const mode of modes) {
    tally.digest = (tally.digest + result.digest) >>> 0;
    addMode(tally, mode, { trials: 1, reuses: result.reuses, failed, lost });
    const example = exampleOf(mode);
    const finding = () => ({ count: 1, example, examples: [example] });
    const classes = result.violations.map(({ invariant, detail }) => `${mode}  ${invariant}: ${general(detail)}`);
    for (const name of new Set(classes)) add(tally.violations, name, finding());
    for (const loss of result.losses) add(tally.losses, `${mode}  ${loss}`, finding());
  }
}

/** Adds one tally to another. */
export function merge(into: Tally, from: Tally): void {
  into.played += from.played;
  into.events += from.events;
  into.slowestMs = Math.max(into.slowestMs, from.slowestMs);
  into.digest = (into.digest + from.digest) >>> 0;
  for (const [mode, more] of Object.entries(from.modes)) addMode(into, mode, more);
  for (const [name, more] of Object.entries(from.violations)) add(into.violations, name, more);
  for (const [name, more] of Object.entries(from.losses)) add(into.losses, name, more);
}

/** Returns a tally as lines of text. */
export function describe(tally: Tally, isList = false): string {
  const { modes, played, events, slowestMs } = tally;
  const head = `${number(played)} trials played, ${number(events)} events; slowest request ${(slowestMs / 1000).toFixed(1)} s`;
  const heads = Object.entries(modes).map(
    ([mode, { trials, reuses, failed, lost }]) =>
      `${mode}: ${number(trials)} trials, ${number(failed)} with a violation, ${number(lost)} with a login that nobody could have kept; ${number(reuses)} used tokens shown`,
  );
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
    ...heads,
    ...rows('violations:', tally.violations),
    ...rows('logins that nobody could have kept:', tally.losses),
  ].join('\n');
}

/** Most examples of one class that are kept. */
const MAX_EXAMPLES = 100;

function addMode({ modes }: Tally, mode: string, more: ModeTally): void {
  const known = modes[mode] ?? { trials: 0, reuses: 0, failed: 0, lost: 0 };
  known.trials += more.trials;
  known.reuses += more.reuses;
  known.failed += more.failed;
  known.lost += more.lost;
  modes[mode] = known;
}

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
    .replace(/\b(?:[aA]da|ben|cal|dee|eve|fay|gus|hal|ivy)\b/g, 'a user')
    .replace(/\d+(?:\.\d+)?/g, 'n');
}

function number(value: number): string {
  return value.toLocaleString('en');
}
