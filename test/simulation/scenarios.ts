import type { Random } from './random.js';
import type { Scenario } from './trial.js';

const SECOND = 1000;

/** When which process gets a request, in seconds. */
type Requests = readonly (readonly [seconds: number, machine: string])[];

/** Round after round, so that every process meets what the others have left. */
function rounds(from: number, everyS: number, machines: string): Requests {
  return [...machines].map((machine, index) => [from + index * everyS, machine]);
}

const ROTATIONS: Requests = [
  ...rounds(10, 0.1, 'ABC'),
  // Within the time in which a refresh begins ahead of expiry.
  ...rounds(190, 0.3, 'AB'),
  ...rounds(200, 7, 'CBACBA'),
  [250, 'C'],
  // Expired: all of them wait for one refresh.
  ...rounds(440, 0.003, 'ABC'),
  ...rounds(444, 7, 'BCABCABCA'),
  ...rounds(510, 15, 'BC'),
];

const BEFORE_LOGIN: Requests = [...rounds(10, 0.1, 'AB'), ...rounds(245, 0.002, 'BC'), [246, 'A'], [252, 'B']];
const AFTER_LOGIN: Requests = [...rounds(262, 1, 'ABC'), ...rounds(275, 15, 'ABC'), ...rounds(330, 15, 'AB')];
const BRIEF: Requests = [...rounds(245, 0.003, 'AB'), ...rounds(250, 6, 'BABABABABA'), ...rounds(320, 10, 'BA')];

/** Messages take half a millisecond to two. */
function near(random: Random): number {
  return random.between(0.5, 2);
}

/** Three processes and one user. */
const USUAL = { machines: ['A', 'B', 'C'], users: ['ada'], lifetimeS: 240, latency: near } as const;

/** Three processes, one user; a refresh ahead of time, one that many wait for, and requests all the while. */
const rotations: Scenario = {
  ...USUAL,
  healMs: 560 * SECOND,
  play(stage) {
    stage.at(0, () => stage.login('A', 'ada'));
    for (const [seconds, machine] of ROTATIONS) stage.at(seconds * SECOND, () => stage.request(machine, 'ada'));
  },
};

/** A logout while the grant is refreshed, a login thereafter, and a second user beside. */
const logouts: Scenario = {
  ...USUAL,
  users: ['ada', 'ben'],
  healMs: 420 * SECOND,
  play(stage) {
    stage.at(0, () => stage.login('A', 'ada'));
    stage.at(0.5 * SECOND, () => stage.login('B', 'ben'));
    for (const [seconds, machine] of BEFORE_LOGIN) {
      stage.at(seconds * SECOND, () => stage.request(machine, 'ada'));
      stage.at(seconds * SECOND + 1, () => stage.request(machine, 'ben'));
    }
    stage.at(245.006 * SECOND, () => stage.logout('A', 'ada'));
    stage.at(260 * SECOND, () => stage.login('C', 'ada'));
    for (const [seconds, machine] of AFTER_LOGIN) stage.at(seconds * SECOND, () => stage.request(machine, 'ada'));
  },
};

/** Two processes that find the token expired at the same time: short, for pairs of faults. */
const brief: Scenario = {
  ...USUAL,
  machines: ['A', 'B'],
  healMs: 350 * SECOND,
  play(stage) {
    stage.at(0, () => stage.login('A', 'ada'));
    for (const [seconds, machine] of BRIEF) stage.at(seconds * SECOND, () => stage.request(machine, 'ada'));
  },
};

/** The nightly job of all processes at once, twice; the second time while somebody logs out, and a token has expired. */
const nights: Scenario = {
  ...USUAL,
  users: ['ada', 'ben'],
  healMs: 400 * SECOND,
  play(stage) {
    stage.at(0, () => stage.login('A', 'ada'));
    stage.at(0.5 * SECOND, () => stage.login('B', 'ben'));
    for (const [seconds, machine] of [...rounds(100, 0.001, 'ABC'), ...rounds(350, 0.002, 'CAB')]) {
      stage.at(seconds * SECOND, () => stage.keepAlive(machine));
      stage.at(seconds * SECOND + 1, () => stage.request(machine, 'ben'));
    }
    stage.at(350.004 * SECOND, () => stage.logout('B', 'ada'));
    for (const [seconds, machine] of rounds(360, 10, 'ABCABC'))
      stage.at(seconds * SECOND, () => stage.request(machine, 'ben'));
  },
};

/** Two users log out at a service that revokes tokens: one while the grant is refreshed, and logs in again, one in peace. */
const revocations: Scenario = {
  ...USUAL,
  users: ['ada', 'ben'],
  healMs: 400 * SECOND,
  revokes: true,
  play(stage) {
    stage.at(0, () => stage.login('A', 'ada'));
    stage.at(0.5 * SECOND, () => stage.login('B', 'ben'));
    for (const [seconds, machine] of [
      ...rounds(10, 0.1, 'AB'),
      ...rounds(245, 0.002, 'BC'),
      ...rounds(265, 15, 'ABCAB'),
    ])
      stage.at(seconds * SECOND, () => stage.request(machine, 'ada'));
    stage.at(245.006 * SECOND, () => stage.logout('A', 'ada'));
    stage.at(100 * SECOND, () => stage.request('C', 'ben'));
    stage.at(110 * SECOND, () => stage.logout('C', 'ben'));
    stage.at(260 * SECOND, () => stage.login('C', 'ada'));
  },
};

/** Four processes work as an organization: all begin at once, the API refuses the token, and it expires. */
const jobs: Scenario = {
  ...USUAL,
  machines: ['A', 'B', 'C', 'D'],
  users: [],
  organizations: ['acme'],
  healMs: 560 * SECOND,
  play(stage) {
    const works = [...rounds(10, 0.001, 'ABCD'), ...rounds(100, 0.002, 'DCBA'), ...rounds(105, 5, 'ABCD')];
    const later = [...rounds(285, 1, 'AB'), ...rounds(520, 0.001, 'ABCD'), ...rounds(525, 4, 'ABCD')];
    for (const [seconds, machine] of [...works, ...later]) stage.at(seconds * SECOND, () => stage.job(machine, 'acme'));
    stage.at(99 * SECOND, () => stage.world.service.refuse('acme'));
  },
};

const CROWD = Array.from({ length: 200 }, (_none, index) => `u${index}`);

/**
 * The tokens of all users have ended overnight, and all come within a second, each twice, to any process. The token endpoint works on
 * five requests at once: it needs 16 seconds for them.
 */
const morning: Scenario = {
  ...USUAL,
  machines: ['A', 'B', 'C', 'D'],
  users: CROWD,
  healMs: 400 * SECOND,
  tokenWork: { places: 5, ms: 400 },
  play(stage) {
    for (const [index, user] of CROWD.entries()) {
      const [first = 'A', second = 'B'] = ['AB', 'BC', 'CD', 'DA', 'AA'][index % 5] ?? '';
      stage.at(index * 0.2 * SECOND, () => stage.login(first, user));
      stage.at(300 * SECOND + index * 5, () => stage.request(first, user));
      stage.at(300 * SECOND + index * 5 + 2, () => stage.request(second, user));
    }
  },
};

/** The scenario of pairs. */
export const SCENARIO_OF_PAIRS = 'brief';

/** The scenario of a crowd: too long for a fault at every place. Some seeds play it, with faults by chance. */
export const SCENARIO_OF_CROWD = 'morning';

/** What the exhaustive search places faults in, save the scenario of a crowd. */
export const SCENARIOS: Readonly<Record<string, Scenario>> = {
  rotations,
  logouts,
  brief,
  nights,
  revocations,
  jobs,
  morning,
};
