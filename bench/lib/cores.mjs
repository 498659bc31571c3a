import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';

/**
 * The two cores of a comparison: what is measured runs on one of them, everything else on the other. Then the load generator
 * takes no time from the measured process, and the scheduler moves none of them.
 *
 * `undefined` for both where `taskset` is missing or there are fewer than two cores: the scheduler decides.
 */
export const { measuredCore, otherCore } = twoCores();

/** What a command line begins with so that the program runs on a core. @param {string | undefined} core @returns {string[]} */
export function onCore(core) {
  return core === undefined ? [] : ['taskset', '-c', core];
}

function twoCores() {
  try {
    execFileSync('taskset', ['--version'], { stdio: 'ignore' });
    // The cores that this process may use, as Linux lists them: `0-3,8`.
    const [, list] = /Cpus_allowed_list:\s+(\S+)/.exec(readFileSync('/proc/self/status', 'utf8')) ?? [];
    const [first, second] = list.split(',').flatMap((range) => {
      const [from, to = from] = range.split('-').map(Number);
      return Array.from({ length: to - from + 1 }, (_none, index) => String(from + index));
    });
    return second === undefined ? {} : { measuredCore: first, otherCore: second };
  } catch {
    return {};
  }
}
