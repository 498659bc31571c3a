import { readdirSync, readFileSync } from 'node:fs';
import { join, sep } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/** What may come, and what must come of it. The place in the list is the number that titles of tests bear. */
const THREATS: readonly (readonly [threat: string, outcome: string])[] = [
  ['A callback without parameters, or with a code and no state', '400 or 403; no request leaves'],
  ['Repeated, nested, over-long, broken or `__proto__` parameters', '400 before any look-up; prototypes untouched'],
  ['A forged state', '403; the pending login still works'],
  ['Several tabs, also without a session yet', 'all log in'],
  ['The same callback again, in series or at once', 'one token request in all'],
  ['A callback begun in another browser, or for another strategy', '403; no token request'],
  ['A state older than ten minutes', '403'],
  [
    '`error=` with and without a good state',
    'a decline or `AuthorizationError`; else 403, and the pending login is kept',
  ],
  ['`error_description` with markup, line breaks, 10 kB', 'not reflected, flashed or logged'],
  ['HEAD, POST or a prefetch of the callback', 'the code is not used up'],
  ['No session middleware; session store down', 'an error that says so; 503, and nothing is half done'],
  ['Caches and referrers of login and callback', '`no-store` and `no-referrer` on every answer'],
  ['Floods of login starts and forged callbacks', 'memory bounded, session store empty'],
  ['One strategy instance for hundreds of users at once', 'everybody gets their own tokens'],
  [
    'Forged `Host` and `X-Forwarded-Host`',
    'an absolute `callbackURL` is unaffected; a relative one follows trust proxy',
  ],
  ['Another `redirect_uri` in the exchange', 'byte for byte the same in both requests'],
  ['`returnTo` to another origin, in any spelling', 'leads to `/`'],
  ['Session fixation', 'session id and grant reference are new after login'],
  ['A dump of the session', 'a reference, never a token'],
  ['Guessed or clashing grant ids', '256 random bits; kept apart by strategy and escaped in keys'],
  ['Logout while a slow request runs', 'nothing brings the grant back'],
  ['A stale session saved after a rotation', 'the rotated pair stays in use'],
  ['Logs of strategy, client, request', 'no secret in `inspect`, JSON, text'],
  ['Logs of errors, with their causes', 'no secret in message, stack, cause'],
  ['API paths that lead elsewhere, in any encoding', '`TypeError`; nothing is sent'],
  ['Forged `Authorization` and `Host`; redirects', '`TypeError`; not followed to another origin'],
  ['A domain claim that is no DNS label', 'a typed error before any request'],
  ['Broken, unsigned, huge or deeply nested JWTs', 'handled; claims never authorize'],
  ['A stored grant whose domain was edited', 'refused on read'],
  ['Token answers that are no token response', 'the login fails; a grant is kept'],
  ['Huge, compressed and twice encoded answers', 'cut off at the limit; memory flat'],
  ['An `access_token` that cannot be used', 'nothing is stored'],
  ['`token_type` in any case, or another', 'bearer in any case; another is refused'],
  ['A senseless `expires_in`', 'a sane lifetime; no refresh loop'],
  ['A refresh without a refresh token', 'the old one is kept'],
  ['No connection: refused, DNS, TLS', 'one more try, then 503; the grant is kept'],
  ['An answer that hangs or drips', 'the total limit of time holds'],
  ['Resets, time-outs and faults after the request left', 'no blind second try; the grant is kept'],
  ['Any `Retry-After`', 'heeded within 30 s; no request sleeps for it'],
  ['`invalid_grant`, `invalid_client`', 'read again, adopt or delete; told to the operator, users stay'],
  ['A refresh ahead of time that fails', 'requests go on with the valid token'],
  ['A thousand requests that wait for one refresh', 'one token request'],
  ['Several processes that refresh at once', 'one token request; late ones read again'],
  ['A browser that goes away, a process that ends', 'the refresh and its save are finished'],
  ['A save that fails or hangs', 'the pair is used from memory and saved later'],
  ['A process that is killed between answer and save', 'a new login at worst'],
  ["The lock's holder dies, or wakes up late", 'others go on; a stale write is refused'],
  ["The lock's service is down", 'valid tokens go on being used; 503 for expired ones'],
  ['Login or logout during a refresh', 'the late result is discarded'],
  ['Ten thousand random interleavings', 'no cross-delivery; every map ends empty'],
  ['Hundreds of 401s at once', 'one refresh, one more try each, then a cool-down'],
  ['A clock that is wrong or jumps', 'no loop, no storm'],
  ['Sealed records: old key, unknown key, moved, plain', 'readable; else no grant, told to the operator, and kept'],
  ['The emulator in production, or on a public address', 'refuses to start'],
  ['Two strategies of one name for two services', 'no token, callback or grant crosses; a warning tells the developer'],
  ['Several pages opened at once without a login', 'each comes back to itself'],
  ['A planted session, or another user, at `passport.authorize`', 'refused, or the session id is new'],
  ['A response that other middleware has sent', 'an error to the application; no session and no grant stays'],
  ['One callback at two processes', 'one token request, if the store has a lock'],
  ['A session cookie that never comes back', 'an error that names the cause after a few rounds'],
  ['Cookies of other software', 'the `Cookie` header stays below 8 KB; the login succeeds'],
  ['A prefetch of the login route', 'begins no login'],
  ["A framework's own Passport port", 'a clear error; no crash, no hung request'],
  ['A failed save, a frozen holder, a failover, where reuse revokes', 'the login stays valid'],
  ['A delete that arrives late; a store that folds case', 'never removes or shows the grant of another login'],
  ['Lists that do not page, unread streams, errors that drip', 'every call ends; every place is released'],
  ['`fetch` with another origin, a `Request`, a redirect', 'no token leaves the origins of the API'],
  ['The emulator under `allowRemote`', 'refuses pages of other origins, and foreign hosts otherwise'],
];

/** The numbers of all lines. */
export const NUMBERS: readonly number[] = THREATS.map((_line, index) => index + 1);

/** The files with tests of each line: those that name it in the meta of a test or a group of tests. */
export function testsOfThreats(): ReadonlyMap<number, readonly string[]> {
  const found = new Map<number, string[]>(NUMBERS.map((number) => [number, []]));
  for (const file of testFiles()) {
    for (const number of numbersIn(readFileSync(join(ROOT, file), 'utf8'))) found.get(number)?.push(file);
  }
  return found;
}

/** The table of docs/security.md. */
export function threatsTable(): string {
  const rows = [...testsOfThreats()].map(([number, files]) => {
    const [threat, outcome] = THREATS[number - 1] ?? ['', ''];
    return `| ${number} | ${threat} | ${outcome} | ${files.map((file) => `\`${file.slice('test/'.length)}\``).join(', ')} |`;
  });
  return ['| | what may come | what comes of it | shown in `test/` |', '|---|---|---|---|', ...rows].join('\n');
}

function testFiles(): string[] {
  return readdirSync(join(ROOT, 'test'), { recursive: true, encoding: 'utf8' })
    .filter((name) => /\.(?:test|perf)\.ts$/.test(name) && !name.endsWith('threats-table.test.ts'))
    .map((name) => `test/${name.split(sep).join('/')}`)
    .sort();
}

function numbersIn(source: string): Set<number> {
  const metas = source.match(/threats: \[[\d, ]+\]/g) ?? [];
  return new Set(metas.flatMap((meta) => (meta.match(/\d+/g) ?? []).map(Number)));
}
