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
  const [measuredCore, otherCore] = allowedCores();
  if (otherCore === undefined || !hasTaskset()) return {};
  return { measuredCore, otherCore };
}

/** The cores that this process may use, as Linux lists them: `0-3,8`. */
function allowedCores() {
  try {
    const [, list] = /Cpus_allowed_list:\s+(\S+)/.exec(readFileSync('/proc/self/status', 'utf8')) ?? [];
    return (list ?? '').split(',').flatMap((range) => {
      const [first, last = first] = range.split('-').map(Number);
      return Array.from({ length: last - first + 1 }, (_none, index) => String(first + index));
    });
  } catch {
    return [];
  }
}

function hasTaskset() {
  try {
    execFileSync('taskset', ['--version'], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}
