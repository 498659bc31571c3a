import { count, figure, mebibytes, spread } from './format.mjs';

/** @typedef {import('./format.mjs').Table} Table */
/** @typedef {readonly [head: string, cell: (row: any) => string]} Column */

const text = (head, key) => [head, (row) => row[key]];
const whole = (head, key) => [head, (row) => count(Math.round(row[key]))];
const number = (head, key) => [head, (row) => figure(row[key])];
const ranged = (head, key) => [head, (row) => spread(row[key])];
const yesNo = (head, key) => [head, (row) => (row[key] ? 'yes' : 'no')];
const middle = (head, key) => [head, (row) => figure(row[key].value)];

const NAME = text('', 'name');
const CPU = ranged('CPU µs each', 'cpuUs');
const CPU_RATIO = ranged('CPU ratio', 'cpuRatio');
const LATENCIES = [number('p50 ms', 'p50Ms'), number('p99 ms', 'p99Ms')];
const COMPARED = [CPU, CPU_RATIO, ranged('throughput ratio', 'throughputRatio'), ...LATENCIES];
const REQUESTS = [NAME, middle('requests/s', 'perSecond'), ...COMPARED];

/** The tables of each scenario's rows, under their names in the document. @type {Record<string, Record<string, readonly Column[]>>} */
const COLUMNS = {
  overhead: { overhead: REQUESTS },
  'overhead-redis': {
    'overhead-redis': [NAME, number('commands each', 'commands'), number("Redis' CPU µs", 'storeCpuUs'), ...COMPARED],
  },
  'api-loop': { 'api-loop': [NAME, whole('projects', 'projects'), ...COMPARED] },
  application: { application: REQUESTS },
  forward: { forward: REQUESTS },
  logins: {
    logins: [NAME, middle('logins/s', 'perSecond'), ...COMPARED, ranged('CPU to hand-written', 'cpuToHandWritten')],
  },
  imports: { imports: [NAME, middle('ms', 'ms'), middle('CPU ms', 'cpuMs'), CPU_RATIO] },
  morning: {
    morning: [
      NAME,
      whole('the token endpoint takes, ms', 'delayMs'),
      whole('refused', 'refused'),
      whole('most requests at the endpoint', 'mostAtOnce'),
      ranged('last page against the endpoint', 'lastRatio'),
    ],
  },
  stampede: {
    stampede: [
      NAME,
      whole('token requests', 'tokenRequests'),
      whole('most', 'mostTokenRequests'),
      whole('failures', 'failures'),
      whole('most', 'mostFailures'),
      ranged('last answer ms', 'lastMs'),
    ],
  },
  'late-save': {
    'late-save': [
      NAME,
      yesNo('refresh worked', 'refreshWorked'),
      yesNo('login survived', 'loginSurvived'),
      whole('refused refreshes', 'refusedRefreshes'),
    ],
  },
  memory: { memory: [text('bytes', 'name'), ranged('', 'bytes')] },
  'growth-grants': {
    'growth-grants': [
      text('store', 'store'),
      whole('grants', 'grants'),
      CPU,
      middle('requests/s', 'perSecond'),
      ...LATENCIES,
      whole('bytes each in store', 'storeBytes'),
      ['process RSS', ({ rss }) => mebibytes(rss)],
      ['CPU ratio, of the same 1,000 users', ({ activeRatio }) => (activeRatio ? spread(activeRatio) : '')],
      number('`grants()` ms', 'listMs'),
      number('`keepAlive()` ms', 'keepAliveMs'),
    ],
  },
  sweep: {
    sweep: [text('store', 'store'), whole('grants that expire', 'expired'), number('gone after, s', 'seconds')],
  },
  'growth-processes': {
    'growth-processes': [
      text('store', 'store'),
      whole('processes', 'processes'),
      middle('requests/s', 'perSecond'),
      CPU,
      ranged("store's CPU µs", 'storeCpuUs'),
      ...LATENCIES,
    ],
  },
};

const REFRESHES = [
  text('each request refreshes', 'store'),
  number('refreshes/s', 'perSecond'),
  number('CPU µs each', 'cpuUs'),
  number("store's CPU µs", 'storeCpuUs'),
  ...LATENCIES,
];

/** Tables of one column: a result that has no rows. */
const FACTS = {
  middleware: ({ ns, bytes }) => ({
    middleware: [
      ['one pass', ''],
      ['ns of CPU', spread(ns)],
      ['bytes allocated', spread(bytes)],
    ],
  }),
  stampede: ({ together }) => ({
    'stampede-together': [
      [`${count(together.requests)} requests, ${together.processes} processes over Redis`, ''],
      ['the token endpoint takes, ms', count(together.tokenDelayMs)],
      ['token requests, most', count(together.mostTokenRequests)],
      ['failures, most', count(together.mostFailures)],
      ['last answer, ms', spread(together.lastMs)],
      ['last answer against the token endpoint', spread(together.lastRatio)],
      ['last answer with a fresh token, ms', spread(together.freshMs)],
    ],
  }),
  'growth-processes': ({ refreshes }) => ({ 'growth-refreshes': tableOf(REFRESHES, refreshes) }),
};

/** How a scenario's result looks as tables, each under its name in the document. @returns {Record<string, Table>} */
export function tablesOf(name, result) {
  const tables = Object.entries(COLUMNS[name] ?? {}).map(([title, columns]) => [title, tableOf(columns, result.rows)]);
  return { ...Object.fromEntries(tables), ...FACTS[name]?.(result) };
}

/** Without the columns of what was not measured yet. @param {readonly Column[]} columns @returns {Table} */
function tableOf(columns, rows) {
  const shown = columns.filter(([, cell]) => rows.some((row) => cell(row) !== ''));
  return [shown.map(([head]) => head), ...rows.map((row) => shown.map(([, cell]) => cell(row)))];
}
