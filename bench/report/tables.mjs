import { count, figure, mebibytes, spread } from './format.mjs';

/** @typedef {import('./format.mjs').Table} Table */

/** How a scenario's result looks as tables, each under its name in the document. @type {Record<string, (result: any) => Record<string, Table>>} */
const TABLES = {
  middleware: (result) => ({ middleware: middlewareTable(result) }),
  overhead: (result) => ({ overhead: comparison(result, 'requests/s') }),
  'overhead-redis': (result) => ({ 'overhead-redis': redisTable(result) }),
  'api-loop': (result) => ({ 'api-loop': apiTable(result) }),
  application: (result) => ({
    application: comparison(result, 'requests/s'),
    'first-request': firstRequestTable(result),
  }),
  logins: (result) => ({ logins: loginTable(result) }),
  imports: (result) => ({ imports: importTable(result) }),
  morning: (result) => ({ morning: morningTable(result) }),
  stampede: (result) => ({ stampede: stampedeTable(result), 'stampede-together': togetherTable(result) }),
  'late-save': (result) => ({ 'late-save': lateSaveTable(result) }),
  forward: (result) => ({ forward: comparison(result, 'requests/s') }),
  memory: (result) => ({ memory: memoryTable(result) }),
  grants: (result) => ({ grants: grantsTable(result) }),
  'growth-grants': (result) => ({ 'growth-grants': growthGrantsTable(result) }),
  'growth-processes': (result) => ({
    'growth-processes': growthProcessesTable(result),
    'growth-refreshes': growthRefreshesTable(result),
  }),
  emulator: (result) => ({ emulator: emulatorTable(result) }),
};

/** @param {string} name of the scenario @returns {Record<string, Table>} */
export function tablesOf(name, result) {
  return TABLES[name]?.(result) ?? {};
}

function middlewareTable({ ns, bytes }) {
  return [
    ['one pass', ''],
    ['ns of CPU', spread(ns)],
    ['bytes allocated', spread(bytes)],
  ];
}

const COMPARED = ['CPU µs each', 'CPU ratio', 'throughput ratio', 'p50 ms', 'p99 ms'];

function comparison({ rows }, unit) {
  return [
    ['', unit, ...COMPARED],
    ...rows.map((row) => [row.name, figure(row.perSecond.value), ...comparedCells(row)]),
  ];
}

function comparedCells(row) {
  return [spread(row.cpuUs), spread(row.cpuRatio), spread(row.throughputRatio), figure(row.p50Ms), figure(row.p99Ms)];
}

function redisTable({ rows }) {
  return [
    ['', 'commands each', "Redis' CPU µs", ...COMPARED],
    ...rows.map((row) => [row.name, figure(row.commands), figure(row.storeCpuUs), ...comparedCells(row)]),
  ];
}

function apiTable({ rows }) {
  return [['', 'projects', ...COMPARED], ...rows.map((row) => [row.name, count(row.projects), ...comparedCells(row)])];
}

function loginTable({ rows }) {
  const [head, ...lines] = comparison({ rows }, 'logins/s');
  return [
    [...head, 'CPU to hand-written'],
    ...lines.map((line, index) => [...line, spread(rows[index].cpuToHandWritten)]),
  ];
}

function firstRequestTable({ rows }) {
  const head = ['', 'first login ms', 'first GET /projects ms', 'CPU ms until then, from the start'];
  return [
    head,
    ...rows.map((row) => [row.name, figure(row.firstLoginMs), figure(row.firstMs), spread(row.startCpuMs)]),
  ];
}

function importTable({ rows }) {
  const head = ['', 'ms', 'CPU ms', 'CPU ratio', 'packages installed', 'size installed'];
  return [
    head,
    ...rows.map(({ name, ms, cpuMs, cpuRatio, installed }) => [
      name,
      figure(ms.value),
      figure(cpuMs.value),
      spread(cpuRatio),
      installed ? count(installed.packages) : '',
      installed ? mebibytes(installed.bytes) : '',
    ]),
  ];
}

function stampedeTable({ rows }) {
  const head = ['', 'token requests', 'most', 'failures', 'most', 'last answer ms'];
  return [
    head,
    ...rows.map((row) => [
      row.name,
      count(row.tokenRequests),
      count(row.mostTokenRequests),
      count(row.failures),
      count(row.mostFailures),
      spread(row.lastMs),
    ]),
  ];
}

function morningTable({ rows }) {
  return [
    ['', 'the token endpoint takes, ms', 'refused', 'most requests at the endpoint', 'last page against the endpoint'],
    ...rows.map(({ name, delayMs, refused, mostAtOnce, lastRatio }) => [
      name,
      count(delayMs),
      count(refused),
      count(mostAtOnce),
      spread(lastRatio),
    ]),
  ];
}

function togetherTable({ together }) {
  return [
    [`${count(together.requests)} requests, ${together.processes} processes over Redis`, ''],
    ['the token endpoint takes, ms', count(together.tokenDelayMs)],
    ['token requests, most', count(together.mostTokenRequests)],
    ['failures, most', count(together.mostFailures)],
    ['last answer, ms', spread(together.lastMs)],
    ['last answer against the token endpoint', spread(together.lastRatio)],
    ['last answer with a fresh token, ms', spread(together.freshMs)],
  ];
}

function lateSaveTable({ rows }) {
  const head = ['', 'refresh worked', 'login survived', 'refused refreshes'];
  const word = (fact) => (fact ? 'yes' : 'no');
  return [
    head,
    ...rows.map(({ name, refreshWorked, loginSurvived, refusedRefreshes }) => [
      name,
      word(refreshWorked),
      word(loginSurvived),
      count(refusedRefreshes),
    ]),
  ];
}

function memoryTable({ rows }) {
  return [['bytes', ''], ...rows.map(({ name, bytes }) => [name, spread(bytes)])];
}

function grantsTable({ rows }) {
  const head = ['', 'grants', 'requests', 'CPU µs each', 'CPU ratio', 'p50 ms', 'p99 ms'];
  return [
    [...head, 'GC pauses µs each', 'a young GC, ms', 'heap'],
    ...rows.map((row) => [
      row.program,
      count(row.grants),
      row.requests,
      spread(row.cpuUs),
      spread(row.cpuRatio),
      figure(row.p50Ms),
      figure(row.p99Ms),
      spread(row.pausesUs),
      figure(row.youngMs),
      mebibytes(row.heapBytes),
    ]),
  ];
}

function growthGrantsTable({ rows }) {
  const head = [
    'store',
    'grants',
    'CPU µs each',
    'requests/s',
    'p50 ms',
    'p99 ms',
    'bytes each in store',
    'process RSS',
  ];
  return [
    head,
    ...rows.map((row) => [
      row.store,
      count(row.grants),
      spread(row.cpuUs),
      figure(row.perSecond.value),
      figure(row.p50Ms),
      figure(row.p99Ms),
      count(Math.round(row.storeBytes)),
      mebibytes(row.rss),
    ]),
  ];
}

function growthProcessesTable({ rows }) {
  const head = ['store', 'processes', 'requests/s', 'CPU µs each', "store's CPU µs", 'p50 ms', 'p99 ms'];
  return [
    head,
    ...rows.map((row) => [
      row.store,
      count(row.processes),
      figure(row.perSecond.value),
      spread(row.cpuUs),
      spread(row.storeCpuUs),
      figure(row.p50Ms),
      figure(row.p99Ms),
    ]),
  ];
}

function growthRefreshesTable({ refreshes }) {
  const head = ['each request refreshes', 'refreshes/s', 'CPU µs each', "store's CPU µs", 'p50 ms', 'p99 ms'];
  return [
    head,
    ...refreshes.map((row) => [
      row.store,
      figure(row.perSecond),
      figure(row.cpuUs),
      figure(row.storeCpuUs),
      figure(row.p50Ms),
      figure(row.p99Ms),
    ]),
  ];
}

function emulatorTable({ uploads, statuses, peakBytes }) {
  const answers = Object.entries(statuses).map(([status, times]) => `${count(times)} with ${status}`);
  return [
    ['', ''],
    ['uploads', count(uploads)],
    ['answers', answers.join(', ')],
    ['most memory of the process', mebibytes(peakBytes)],
  ];
}
