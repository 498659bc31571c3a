import { count, figure, mebibytes, spread } from './format.mjs';

/** How a scenario's result looks as a table. @type {Record<string, (result: any) => import('./format.mjs').Table>} */
const TABLES = {
  overhead: (result) => comparison(result, 'requests/s'),
  'overhead-redis': (result) => comparison(result, 'requests/s'),
  'api-loop': (result) => comparison(result, 'calls/s'),
  application: (result) => comparison(result, 'requests/s'),
  logins: (result) => comparison(result, 'logins/s'),
  imports: importTable,
  stampede: stampedeTable,
  'late-save': lateSaveTable,
  grants: grantsTable,
  processes: processesTable,
  expiries: expiriesTable,
  soak: soakTable,
  emulator: emulatorTable,
};

/** @param {string} name of the scenario */
export function tableOf(name, result) {
  return TABLES[name](result);
}

function comparison({ rows }, unit) {
  const head = ['', unit, 'ratio', 'CPU µs each', 'CPU ratio', 'p50 ms', 'p99 ms'];
  return [
    head,
    ...rows.map((row) => [
      row.name,
      figure(row.perSecond.median),
      spread(row.throughputRatio),
      figure(row.cpuUs.median),
      spread(row.cpuRatio),
      figure(row.p50Ms),
      figure(row.p99Ms),
    ]),
  ];
}

function importTable({ rows }) {
  const head = ['', 'ms', 'CPU ms', 'ratio', 'packages installed', 'size installed'];
  return [
    head,
    ...rows.map(({ name, ms, cpuMs, ratio, installed }) => [
      name,
      figure(ms.median),
      figure(cpuMs.median),
      spread(ratio),
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
      count(row.tokenRequests.median),
      count(row.mostTokenRequests),
      count(row.failures.median),
      count(row.mostFailures),
      `${figure(row.lastMs.median)} (${figure(row.lastMs.low)}–${figure(row.lastMs.high)})`,
    ]),
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

function grantsTable({ rows }) {
  const head = [
    'store',
    'grants',
    'CPU µs, cached',
    'CPU µs, random grant',
    'requests/s',
    'bytes each in store',
    'process RSS',
  ];
  return [
    head,
    ...rows.map((row) => [
      row.store,
      count(row.grants),
      figure(row.cachedCpuUs.median),
      figure(row.randomCpuUs.median),
      figure(row.perSecond.median),
      count(Math.round(row.storeBytes)),
      mebibytes(row.rss),
    ]),
  ];
}

function processesTable({ rows }) {
  const head = ['processes', 'requests/s', 'CPU µs each'];
  return [head, ...rows.map((row) => [count(row.processes), figure(row.perSecond.median), figure(row.cpuUs.median)])];
}

function expiriesTable({ rows }) {
  const head = [
    'grants',
    'ahead: refreshes',
    'most in a second',
    'most at once',
    'expired: refreshes',
    'most at once',
    'all answered ms',
    'CPU µs each',
    'failures',
  ];
  return [
    head,
    ...rows.map(({ grants, ahead, expired }) => [
      count(grants),
      count(ahead.refreshed),
      count(ahead.mostPerSecond),
      count(ahead.mostAtOnce),
      count(expired.refreshed),
      count(expired.mostAtOnce),
      figure(expired.durationMs),
      figure(expired.cpuUs),
      count(expired.failures),
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

function soakTable(result) {
  const { heap, statuses, events } = result;
  const others = Object.entries(statuses).filter(([status]) => status !== '200');
  return [
    ['', ''],
    ['minutes', count(result.minutes)],
    ['users', count(result.users)],
    ['requests', count(result.requests)],
    ['logins', `${count(result.logins)}, and ${count(result.failedLogins)} that met a fault`],
    ['logouts', count(result.logouts)],
    ['refreshes', count(events.refreshed ?? 0)],
    ['faults', count(result.faults)],
    ['requests that failed', others.map(([status, times]) => `${times} with ${status}`).join(', ') || 'none'],
    [
      'grants lost',
      count(Object.entries(events).reduce((sum, [name, times]) => sum + (name.startsWith('lost') ? times : 0), 0)),
    ],
    ['heap: start, middle, end', [heap[0], heap[6], heap.at(-1)].map(mebibytes).join(', ')],
  ];
}
