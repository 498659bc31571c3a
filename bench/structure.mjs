import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync, realpathSync, rmSync } from 'node:fs';
import { Session } from 'node:inspector/promises';
import { createRequire } from 'node:module';
import { dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import express from 'express';
import { loginApp } from './apps/common.mjs';

/**
 * For a maintainer: the size and the shape of the source, and how much of it one request runs.
 *
 *   npm run structure [-- FOLDER]
 *
 * FOLDER is another checkout with its packages installed, to compare with.
 */
const root = resolve(process.argv[2] ?? fileURLToPath(new URL('..', import.meta.url)));
process.chdir(root);
const { rolldown } = await import(pathToFileURL(createRequire(`${root}/`).resolve('rolldown')).href);

/** Features that an application switches on, each in a folder. Four of them share `databases/`. */
const GUESTS =
  'accounts cli conformance databases embedded emulator fetch forward jobs limits mysql pagination postgres providers redis sqlite step-up tenants';
const isGuest = (room) => GUESTS.split(' ').some((guest) => room === `${guest}/`);
const bundling = { external: /^[^./]/, platform: 'node', checks: { bundlerTimings: false } };

const sources = readdirSync('src', { recursive: true }).filter((file) => /(?<!\.d)\.ts$/.test(file));
const textOf = (file) => readFileSync(join('src', file), 'utf8');
const roomOf = (file) => (file.includes('/') ? `${file.split('/', 1)}/` : file);

const rows = [...shape(), ...lines(), ...(await bundled()), ...(await entered()), ...installed()];
for (const [measure, value] of rows) console.log(`${measure.padEnd(58)} ${value}`);
process.exit();

/** Rooms are the folders of src/ and the files beside them. Their order is that of docs/architecture.md. */
function shape() {
  const arrows = new Map();
  for (const file of sources) {
    for (const [, path] of textOf(file).matchAll(
      /^(?:import|export)\b[^;]*?from '(\.[^']+)'|import\('(\.[^']+)'\)/gms,
    )) {
      if (path === undefined) continue;
      const [from, to] = [roomOf(file), roomOf(join(dirname(file), path.replace(/js$/, 'ts')))];
      if (from !== to) arrows.set(from, (arrows.get(from) ?? new Set()).add(to));
    }
  }
  const order = [...readFileSync('docs/architecture.md', 'utf8').matchAll(/^- (`[^:]+):/gm)].map(([, names]) => names);
  const floorOf = (room) => order.findIndex((names) => names.includes(`\`${room}\``));
  const upward = [...arrows].flatMap(([from, targets]) =>
    [...targets]
      .filter(
        (to) => from !== 'index.ts' && (isGuest(to) ? !isGuest(from) : !isGuest(from) && floorOf(to) < floorOf(from)),
      )
      .map((to) => `${from} → ${to}`),
  );
  const cycles = new Set();
  const heights = new Map();
  const height = (room, path = []) => {
    if (path.includes(room)) cycles.add(path.slice(path.indexOf(room)).sort().join(' '));
    if (heights.has(room) || path.includes(room)) return heights.get(room) ?? 0;
    const below = [...(arrows.get(room) ?? [])].map((to) => height(to, [...path, room]));
    heights.set(room, 1 + Math.max(0, ...below));
    return heights.get(room);
  };
  const floors = Math.max(...[...arrows.keys()].map((room) => height(room)));
  const count = [...arrows.values()].reduce((sum, targets) => sum + targets.size, 0);
  return [
    ['floors / arrows between folders', `${floors} / ${count}`],
    ['upward arrows / cycles', `${upward.length} / ${cycles.size}  ${[...upward, ...cycles].join(', ')}`],
  ];
}

function lines() {
  const sum = (files) => files.reduce((total, file) => total + textOf(file).split('\n').length - 1, 0);
  const guests = sources.filter((file) => isGuest(roomOf(file)) && roomOf(file) !== 'emulator/');
  const core = sources.filter((file) => !isGuest(roomOf(file)));
  return [
    ['core: lines / files', `${sum(core)} / ${core.length}`],
    ['guests without the emulator: lines / files', `${sum(guests)} / ${guests.length}`],
  ];
}

/** What an application with these four exports loads, minified, and what it loads once it calls for it. */
async function bundled() {
  const names = 'Strategy, apiClient, requireAuthorization, logout';
  const entry = { name: 'entry', resolveId: (id) => (id === 'entry' ? id : null) };
  const load = (id) => (id === 'entry' ? `export { ${names} } from '${root}/src/index.ts';` : null);
  const bundle = await rolldown({
    ...bundling,
    input: 'entry',
    external: /^(?!entry$)[^./]/,
    plugins: [{ ...entry, load }],
  });
  const { output } = await bundle.generate({ minify: true });
  const chunks = output.filter(({ type }) => type === 'chunk');
  const byName = new Map(chunks.map((chunk) => [chunk.fileName, chunk]));
  const atOnce = new Set();
  const add = (chunk) => {
    if (chunk === undefined || atOnce.has(chunk)) return;
    atOnce.add(chunk);
    for (const file of chunk.imports) add(byName.get(file));
  };
  add(chunks.find(({ isEntry }) => isEntry));
  const kB = (list) => (list.reduce((sum, { code }) => sum + Buffer.byteLength(code), 0) / 1000).toFixed(1);
  return [
    [`bundled and minified: ${names}`, `${kB([...atOnce])} kB`],
    ['loaded when first called', `${kB(chunks.filter((chunk) => !atOnce.has(chunk)))} kB`],
  ];
}

/** Counts functions by V8's coverage, over a build that keeps the files of src/ apart. */
async function entered() {
  const folder = join(realpathSync('node_modules'), '.structure');
  const bundle = await rolldown({
    ...bundling,
    input: { index: 'src/index.ts', 'emulator/index': 'src/emulator/index.ts' },
  });
  await bundle.write({ dir: folder, preserveModules: true, preserveModulesRoot: 'src' });
  const session = new Session();
  session.connect();
  await session.post('Profiler.enable');
  await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false });
  const requests = await application(folder);
  const counts = [];
  for (const [name, prepare] of Object.entries(requests)) {
    // The first one of a kind also sets up what later ones find.
    for (const isCounted of [false, true]) {
      const request = await prepare();
      await session.post('Profiler.takePreciseCoverage');
      const { status } = await request();
      const { result } = await session.post('Profiler.takePreciseCoverage');
      if (status >= 400) throw new Error(`${name}: answered with ${status}`);
      if (isCounted) counts.push([`functions / files entered: ${name}`, countOf(result, folder)]);
    }
  }
  rmSync(folder, { recursive: true });
  return counts;
}

/** Starts an application and its service. Returns, by kind, what prepares a request. */
async function application(folder) {
  const { apiClient, requireAuthorization, Strategy } = await import(join(folder, 'index.js'));
  const { startEmulator } = await import(join(folder, 'emulator/index.js'));
  let now = Date.now();
  const clock = () => now;
  const server = express().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const origin = `http://127.0.0.1:${server.address().port}`;
  const service = await startEmulator({ clock, applications: [{ redirectUrls: [`${origin}/callback`] }] });
  const options = { ...service.options, callbackURL: `${origin}/callback`, scope: ['project'], clock };
  const strategy = new Strategy(options, (_access, _refresh, profile, done) => done(null, { id: profile.id }));
  const { app, auth } = loginApp({ strategy });
  app.get('/login', auth.authenticate('oauth-app'));
  app.get('/callback', auth.authenticate('oauth-app', { successRedirect: '/' }));
  app.get('/projects', apiClient(strategy), requireAuthorization(), async (req, res) => {
    res.json(await req.apiClient.projects());
  });
  server.removeAllListeners('request').on('request', app);
  let cookies = {};
  const get = async (url) => {
    const Cookie = Object.entries(cookies).map((pair) => pair.join('='));
    const response = await fetch(url, { redirect: 'manual', headers: { Cookie: Cookie.join('; ') } });
    await response.text();
    for (const set of response.headers.getSetCookie()) cookies[set.split('=', 1)] = set.replace(/^.*?=|;.*/g, '');
    return response;
  };
  const projects = async () => () => get(`${origin}/projects`);
  return {
    callback: async () => {
      cookies = {};
      const begun = await get(`${origin}/login`);
      const callback = await service.approve(begun.headers.get('location'));
      return () => get(callback);
    },
    'cached request with an API call': projects,
    'expired request with an API call': () => {
      now += 7_200_000;
      return projects();
    },
  };
}

function countOf(scripts, folder) {
  const own = scripts.filter(({ url }) => {
    const path = url.startsWith('file:') ? relative(folder, fileURLToPath(url)) : '..';
    return !path.startsWith('..') && !path.startsWith('emulator');
  });
  // A file itself counts as a function without a name that begins where the file does.
  const isEntered = ({ functionName, ranges: [range] }) =>
    range.count > 0 && (functionName !== '' || range.startOffset > 0);
  const calls = own.map(({ functions }) => functions.filter(isEntered).length);
  return `${calls.reduce((sum, count) => sum + count, 0)} / ${calls.filter((count) => count > 0).length}`;
}

function installed() {
  execFileSync('npm', ['run', '--silent', 'build'], { stdio: 'inherit' });
  const packed = execFileSync('npm', ['pack', '--dry-run', '--json', '--ignore-scripts'], {
    encoding: 'utf8',
    stdio: 'pipe',
  });
  const [{ unpackedSize, size }] = JSON.parse(packed);
  const MB = (bytes) => (bytes / 1e6).toFixed(2);
  return [['installed package / tarball', `${MB(unpackedSize)} / ${MB(size)} MB`]];
}
