import { existsSync, readFileSync } from 'node:fs';
import { SourceMap } from 'node:module';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../../', import.meta.url));

/** Which part a package belongs to: what Express, express-session and Passport bring along counts as theirs. */
const PARTS = {
  Express: [
    ...['express', 'router', 'finalhandler', 'parseurl', 'body-parser', 'qs', 'send', 'serve-static', 'accepts'],
    ...[
      'negotiator',
      'mime-types',
      'mime-db',
      'type-is',
      'content-type',
      'content-disposition',
      'etag',
      'fresh',
      'vary',
    ],
    ...['proxy-addr', 'forwarded', 'ipaddr.js', 'path-to-regexp', 'merge-descriptors', 'on-finished', 'ee-first'],
    ...['encodeurl', 'escape-html', 'statuses', 'http-errors', 'is-promise', 'once', 'side-channel', 'bytes'],
  ],
  'express-session': [
    'express-session',
    'cookie',
    'on-headers',
    'uid-safe',
    'random-bytes',
    'cookie-signature',
    'safe-buffer',
  ],
  Passport: ['passport', 'passport-strategy', 'passport-oauth2', 'oauth', 'pause', 'utils-merge', 'base64url'],
  undici: ['undici'],
  'Redis client': ['redis', '@redis', 'connect-redis'],
  'passport-oauth-app': ['jose'],
};
const PART_OF = new Map(Object.entries(PARTS).flatMap(([part, names]) => names.map((name) => [name, part])));

/** In the order in which tables list them. */
export const PART_NAMES = [
  ...Object.keys(PARTS),
  'application',
  'other packages',
  'Node',
  'native code',
  'garbage collection',
];

/**
 * @typedef {object} Frame A function on the stack, with all that it calls.
 * @property {string} name
 * @property {string} file for people: a file of src, a package's, or Node's
 * @property {string} part one of {@link PART_NAMES}
 * @property {number} self microseconds in the function itself
 * @property {number} total and in what it calls
 * @property {Frame[]} children
 */

/** The process waits; and the profiler's own beginning and end. */
const LEFT_OUT = ['(idle)', 'startProfile', 'stopProfile'];

/** Reads a profile of V8, without the time in which the process was idle. @returns {Frame} the root of all stacks */
export function readProfile(file) {
  const { nodes, samples, timeDeltas } = JSON.parse(readFileSync(file, 'utf8'));
  const selfUs = new Map();
  for (const [index, id] of samples.entries()) selfUs.set(id, (selfUs.get(id) ?? 0) + timeDeltas[index]);
  const byId = new Map(nodes.map((node) => [node.id, node]));
  const frameOf = ({ id, callFrame, children = [] }) => {
    const called = merged(
      children.map((child) => byId.get(child)).filter(({ callFrame }) => !LEFT_OUT.includes(callFrame.functionName)),
      frameOf,
    );
    const self = selfUs.get(id) ?? 0;
    const total = called.reduce((sum, child) => sum + child.total, self);
    return { ...placeOf(callFrame), self, total, children: called };
  };
  return frameOf(nodes[0]);
}

/** Functions of one name and file are one frame, wherever in the file V8 has seen them. */
function merged(nodes, frameOf) {
  const frames = new Map();
  for (const frame of nodes.map(frameOf)) {
    const key = `${frame.name} ${frame.file}`;
    const known = frames.get(key);
    frames.set(key, known === undefined ? frame : joined(known, frame));
  }
  return [...frames.values()];
}

function joined(one, other) {
  const children = new Map(one.children.map((child) => [`${child.name} ${child.file}`, child]));
  for (const child of other.children) {
    const key = `${child.name} ${child.file}`;
    const known = children.get(key);
    children.set(key, known === undefined ? child : joined(known, child));
  }
  return {
    ...one,
    self: one.self + other.self,
    total: one.total + other.total,
    children: [...children.values()],
  };
}

/** Profiles of several processes of one program, as one. @param {readonly Frame[]} frames */
export function mergedProfiles([first, ...others]) {
  return others.reduce(joined, first);
}

/** How much of the time each part takes by itself. @returns {Record<string, number>} shares that add up to 1 */
export function sharesOf(frame) {
  const us = Object.fromEntries(PART_NAMES.map((part) => [part, 0]));
  const add = ({ part, self, children }) => {
    us[part] += self;
    for (const child of children) add(child);
  };
  add(frame);
  return Object.fromEntries(Object.entries(us).map(([part, own]) => [part, own / frame.total]));
}

/**
 * The functions of this package that take most of the time by themselves.
 *
 * @returns {{ name: string, file: string, share: number }[]}
 */
export function ownFunctions(frame, most = 8) {
  return [...functionsOf(frame).values()]
    .filter(({ part }) => part === 'passport-oauth-app')
    .map(({ name, file, share }) => ({ name, file, share }))
    .sort((a, b) => b.share - a.share)
    .slice(0, most);
}

/**
 * The functions that take more time by themselves in one program than in another, and those that take less.
 *
 * @param {{ profile: Frame, cpuUs: number }} one `cpuUs`: of one request
 * @param {{ profile: Frame, cpuUs: number }} other
 * @returns {{ name: string, file: string, part: string, us: number }[]} the largest differences first
 */
export function differingFunctions(one, other, most = 16) {
  const own = functionsOf(one.profile);
  const others = functionsOf(other.profile);
  return [...new Set([...own.keys(), ...others.keys()])]
    .map((key) => {
      const { name, file, part } = own.get(key) ?? others.get(key);
      const us = (own.get(key)?.share ?? 0) * one.cpuUs - (others.get(key)?.share ?? 0) * other.cpuUs;
      return { name, file, part, us };
    })
    .sort((a, b) => Math.abs(b.us) - Math.abs(a.us))
    .slice(0, most);
}

/**
 * How much of the time goes to the functions of some files and to all that these call.
 *
 * @param {Frame} frame
 * @param {RegExp} files
 */
export function shareWithin(frame, files) {
  const within = (one) =>
    files.test(one.file) ? one.total : one.children.reduce((sum, child) => sum + within(child), 0);
  return within(frame) / frame.total;
}

/** All functions by name and file, with the share of the time that each takes by itself. */
function functionsOf(frame) {
  const functions = new Map();
  const add = ({ name, file, part, self, children }) => {
    const key = `${name} ${file}`;
    functions.set(key, { name, file, part, share: (functions.get(key)?.share ?? 0) + self / frame.total });
    for (const child of children) add(child);
  };
  add(frame);
  return functions;
}

function placeOf({ functionName, url, lineNumber, columnNumber }) {
  const name = functionName === '' ? '(anonymous)' : functionName;
  if (url === '')
    return { name, file: '', part: name === '(garbage collector)' ? 'garbage collection' : 'native code' };
  if (url.startsWith('node:internal/deps/undici')) return { name, file: url, part: 'undici' };
  // Its parser of HTTP.
  if (url.startsWith('wasm:')) return { name, file: 'undici/llhttp.wasm', part: 'undici' };
  if (url.startsWith('node:')) return { name, file: url, part: 'Node' };
  const path = (url.startsWith('file:') ? fileURLToPath(url) : url).replace(root, '');
  const [, scope] = /^(?:bench\/)?node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(path) ?? [];
  if (scope !== undefined) {
    const part = PART_OF.get(scope) ?? PART_OF.get(scope.split('/')[0]) ?? 'other packages';
    return { name, file: path.slice(path.indexOf('node_modules/') + 13), part };
  }
  if (path.startsWith('dist/'))
    return { name, file: sourceOf(path, lineNumber, columnNumber), part: 'passport-oauth-app' };
  return { name, file: path, part: 'application' };
}

const maps = new Map();

/** The file of src that a place in dist was made from. */
function sourceOf(path, line, column) {
  if (!maps.has(path)) {
    const file = `${root}${path}.map`;
    maps.set(path, existsSync(file) ? new SourceMap(JSON.parse(readFileSync(file, 'utf8'))) : undefined);
  }
  const { originalSource } = maps.get(path)?.findEntry(line, column) ?? {};
  const start = originalSource?.lastIndexOf('src/') ?? -1;
  return start < 0 ? path : originalSource.slice(start);
}
