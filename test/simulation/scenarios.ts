import type { Random } from './random.js';
import type { Scenario } from './trial.js';

const SECOND = 1000;

/** Messages take half a millisecond to two. */
function near(random: Random): number {
  return random.between(0.5, 2);
}

/** Three processes, one user; a refresh ahead of time, one that many wait for, and requests all the while. */
const rotations: Scenario = {
  machines: ['A', 'B', 'C'],
  users: ['ada'],
  lifetimeS: 240,
  healMs: 560 * SECOND,
  latency: near,
  play(stage) {
    stage.at(0, () => stage.login('A', 'ada'));
    for (const [seconds, machine] of [
      [10, 'A'], [10.1, 'B'], [10.2, 'C'],
      [190, 'A'], [190.3, 'B'], [200, 'C'], [207, 'B'], [214, 'A'], [221, 'C'], [228, 'B'], [235, 'A'], [250, 'C'],
      [440, 'A'], [440.003, 'B'], [440.006, 'C'],
      [444, 'B'], [449, 'C'], [455, 'A'], [462, 'B'], [469, 'C'], [476, 'A'], [483, 'B'], [490, 'C'], [497, 'A'], [510, 'B'], [525, 'C'],
    ] as const)
      stage.at(seconds * SECOND, () => stage.request(machine, 'ada'));
  },
};

/** A logout while the grant is refreshed, a login thereafter, and a second user beside. */
const logouts: Scenario = {
  machines: ['A', 'B', 'C'],
  users: ['ada', 'ben'],
  lifetimeS: 240,
  healMs: 420 * SECOND,
  latency: near,
  play(stage) {
    stage.at(0, () => stage.login('A', 'ada'));
    stage.at(0.5 * SECOND, () => stage.login('B', 'ben'));
    for (const [seconds, machine] of [[10, 'A'], [10.1, 'B'], [245, 'B'], [245.002, 'C'], [246, 'A'], [252, 'B']] as const) {
      stage.at(seconds * SECOND, () => stage.request(machine, 'ada'));
      stage.at(seconds * SECOND + 1, () => stage.request(machine, 'ben'));
    }
    stage.at(245.006 * SECOND, () => stage.logout('A', 'ada'));
    stage.at(260 * SECOND, () => stage.login('C', 'ada'));
    for (const [seconds, machine] of [[262, 'A'], [263, 'B'], [264, 'C'], [275, 'A'], [290, 'B'], [305, 'C'], [330, 'A'], [345, 'B']] as const)
      stage.at(seconds * SECOND, () => stage.request(machine, 'ada'));
  },
};

/** What the exhaustive search places faults in. */
export const SCENARIOS: Readonly<Record<string, Scenario>> = { rotations, logouts };
