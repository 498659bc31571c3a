import { readdirSync, readFileSync } from 'node:fs';
import { join, sep } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/** What may come, and what must come of it, by the number that tests name in their meta. */
const THREATS: Readonly<Record<number, readonly [threat: string, outcome: string]>> = {
  1: ['A callback without parameters, or with a code and no state', '400 or 403; no request leaves'],
  2: ['Repeated, nested, over-long, broken or `__proto__` parameters', '400 before any look-up; prototypes untouched'],
  3: ['A forged state', '403; the pending login still works'],
  4: ['Several tabs, also without a session yet', 'all log in'],
  5: ['The same callback again, in series or at once', 'one token request in all'],
  6: ['A callback begun in another browser, or for another strategy', '403; no token request'],
  7: ['A state older than ten minutes', '403'],
  8: [
    '`error=` with and without a good state',
    'a decline or `AuthorizationError`; else 403, and the pending login is kept',
  ],
  9: ['`error_description` with markup, line breaks, 10 kB', 'not reflected, flashed or logged'],
  10: ['HEAD, POST or a prefetch of the callback', 'the code is not used up'],
  11: ['No session middleware; session store down', 'an error that says so; 503, and nothing is half done'],
  12: ['Caches and referrers of login and callback', '`no-store` and `no-referrer` on every answer'],
  13: ['Floods of login starts and forged callbacks', 'memory bounded, session store empty'],
  14: ['One strategy instance for many users at once', 'everybody gets their own tokens'],
  15: [
    'Forged `Host` and `X-Forwarded-Host`',
    'an absolute `callbackURL` is unaffected; a relative one follows trust proxy',
  ],
  16: ['Another `redirect_uri` in the exchange', 'byte for byte the same in both requests'],
  17: ['`returnTo` to another origin, in any spelling', 'leads to `/`'],
  18: ['Session fixation', 'session id and grant reference are new after login'],
  19: ['A dump of the session', 'a reference, never a token'],
  20: ['Guessed or clashing grant ids', '256 random bits; kept apart by strategy and escaped in keys'],
  21: ['Logout while a slow request runs', 'nothing brings the grant back'],
  22: ['A stale session saved after a rotation', 'the rotated pair stays in use'],
  23: ['Logs of strategy, client, request', 'no secret in `inspect`, JSON, text'],
  24: ['Logs of errors, with their causes', 'no secret in message, stack, cause'],
  25: ['API paths that lead elsewhere, in any encoding', '`TypeError`; nothing is sent'],
  26: ['Forged `Authorization` and `Host`; redirects', '`TypeError`; not followed to another origin'],
  27: ['A domain claim that is no DNS label', 'a typed error before any request'],
  28: ['Broken, unsigned, huge or deeply nested JWTs', 'handled; claims never authorize'],
  29: ['A stored grant whose domain was edited', 'refused on read'],
  30: ['Token answers that are no token response', 'the login fails; a grant is kept'],
  31: ['Huge, compressed and twice encoded answers', 'cut off at the limit; memory flat'],
  32: ['An `access_token` that cannot be used', 'nothing is stored'],
  33: ['`token_type` in any case, or another', 'bearer in any case; another is refused'],
  34: ['A senseless `expires_in`', 'a sane lifetime; no refresh loop'],
  35: ['A refresh without a refresh token', 'the old one is kept'],
  36: ['No connection: refused, DNS, TLS', 'one more try, then 503; the grant is kept'],
  37: ['An answer that hangs or drips', 'the total limit of time holds'],
  38: ['Resets, time-outs and faults after the request left', 'no blind second try; the grant is kept'],
  39: ['Any `Retry-After`', 'heeded within 30 s; no request sleeps for it'],
  40: ['`invalid_grant`, `invalid_client`', 'read again, adopt or delete; told to the operator, users stay'],
  41: ['A refresh ahead of time that fails', 'requests go on with the valid token'],
  42: ['A thousand requests that wait for one refresh', 'one token request'],
  43: ['Several processes that refresh at once', 'one token request; late ones read again'],
  44: ['A browser that goes away, a process that ends', 'the refresh and its save are finished'],
  45: ['A save that fails or hangs', 'the pair is used from memory and saved later'],
  46: ['A process that is killed between answer and save', 'a new login at worst'],
  47: ["The lock's holder dies, or wakes up late", 'others go on; a stale write is refused'],
  48: ["The lock's service is down", 'valid tokens go on being used; 503 for expired ones'],
  49: ['Login or logout during a refresh', 'the late result is discarded'],
  50: ['Ten thousand random interleavings', 'no cross-delivery; every map ends empty'],
  51: ['Hundreds of 401s at once', 'one refresh, one more try each, then a cool-down'],
  52: ['A clock that is wrong or jumps', 'no loop, no storm'],
  53: ['Sealed records: old key, unknown key, moved, plain', 'readable; else no grant, told to the operator, and kept'],
  54: ['The emulator in production, or on a public address', 'refuses to start'],
  55: [
    'Two strategies of one name for two services',
    'no token, callback or grant crosses; a warning tells the developer',
  ],
  56: ['Several pages opened at once without a login', 'each comes back to itself'],
  57: ['A planted session, or another user, at `passport.authorize`', 'refused, or the session id is new'],
  58: ['A response that other middleware has sent', 'an error to the application; no session and no grant stays'],
  59: ['One callback at two processes', 'one token request, if the store has a lock'],
  60: ['A session cookie that never comes back', 'an error that names the cause after a few rounds'],
  61: ['Cookies of other software', 'the `Cookie` header stays below 8 KB; the login succeeds'],
  62: ['A prefetch of the login route', 'begins no login'],
  63: ["A framework's own Passport port", 'a clear error; no crash, no hung request'],
  64: ['A failed save, a frozen holder, a failover, where reuse revokes', 'the login stays valid'],
  65: ['A delete that arrives late; a store that folds case', 'never removes or shows the grant of another login'],
  66: ['Lists that do not page, unread streams, errors that drip', 'every call ends; every place is released'],
  67: ['`fetch` with another origin, a `Request`, a redirect', 'no token leaves the origins of the API'],
  68: ['The emulator under `allowRemote`', 'refuses pages of other origins, and foreign hosts otherwise'],
  69: [
    '`passport.authorize` with `grantId`, and nobody logged in',
    'refused before the service is asked; no grant is overwritten',
  ],
  70: ['One callback at two processes over the default store', 'one token request, if the session store offers a lock'],
  71: [
    'A cookie of the package that a sibling host has planted',
    'it counts for its own account alone, for a minute; with https none is read',
  ],
  72: ['A session that comes back, and whose grant is not found', 'an error that names the causes after a few rounds'],
  73: ['A user whom `deserializeUser` refuses', 'not authorized; nothing is refreshed for the request'],
  76: ['A prefetch of the login route by a script', 'begins no login'],
  74: ['Long pages behind default buffers of nginx', 'no 502; the page is reached, or `/`'],
  75: ['A logout, or another connection, during a slow code exchange', 'the logout stands; no connection is lost'],
  77: ['A logout with an expired token, the token endpoint hanging', 'answered at once, no token request'],
  78: [
    'A store whose time zone has daylight saving time, a suspended clock, a lost lease, a clock that jumps',
    'the lock excludes, or the loss has a name',
  ],
  79: ['`Retry-After` of the token endpoint, while other refreshes succeed', 'its whole time is kept'],
  80: [
    'A body that nobody reads, or whose reader pauses for ever; an upload longer than `timeout` that flows',
    'place and connection come back; the upload ends well',
  ],
  81: ['Lists whose rows look alike; lists that ignore `offset` and change', 'read to their end; an end'],
  82: [
    'At the emulator: recursive schemas, deep and large JSON, DNS rebinding under `allowRemote`',
    'it answers, stays flat, refuses foreign hosts',
  ],
  83: [
    'Step-up: declined, granted in part, two tabs, scopes in a hand-made link',
    'no loop, no lost grant, no added scope',
  ],
  84: [
    'Revocation endpoint down, slow, lying; a refresh that ends after the logout',
    'the logout is done at once; the late pair is revoked',
  ],
  85: [
    '`forward`: path tricks, foreign pages, smuggled headers, an endless upload, a browser that goes away',
    'nothing is sent that `allow` does not name; nothing leaks; all ends',
  ],
  86: [
    '`applicationGrant` throws, hangs, returns rubbish, asks for `client_id`; four processes at once',
    'an error that names the option, and nothing is sent; one token request',
  ],
  87: ['An import while another process stores a login', 'the newer pair stays'],
  88: [
    'A dead refresh token refused by other words than `invalid_grant`; a Basic secret with special characters',
    '`endsGrant` ends it; the error names the option, or both encodings',
  ],
  89: [
    'Two users of a service whose tokens do not say whose they are; a user without an id',
    'two identities; an error at the login where an id is needed',
  ],
  90: ['A later login whose answer has no refresh token', 'the same user keeps that of the grant'],
  91: ["Options of a provider mixed with the emulator's, in any order", 'nothing is sent to the real service'],
  92: [
    'A grant that another process deletes, also while the connection that tells of it is down',
    'refused within a second, or once the connection is back',
  ],
  93: [
    'Frames: a foreign site frames the login route, or plants, steals or repeats what ends a login there',
    "no login, no message, no session; the visitor's own tabs stay as they were",
  ],
  94: [
    'Frames: third-party cookies are blocked, a cookie has a former twin, the popup has lost its opener',
    'the login ends in the frame, or an error names the cause',
  ],
  95: [
    'A signed token of the frame: expired, of another audience or key, `alg: none`',
    'names nobody; never in `Location`, a cookie or an error',
  ],
  96: ['The user of the popup is not the user of the frame', '403, said in the popup; nothing stored'],
  97: ['A link that the application refuses', 'nothing stored, nothing overwritten'],
  98: ['A failed API call in an `async` handler under Express 4', 'the application goes on'],
};

/** The numbers of all lines. */
export const NUMBERS: readonly number[] = Object.keys(THREATS).map(Number);

/** The files with tests of each line: those that name it in the meta of a test or a group of tests. */
export function testsOfThreats(): ReadonlyMap<number, readonly string[]> {
  const found = new Map<number, string[]>(NUMBERS.map((number) => [number, []]));
  for (const file of testFiles()) {
    for (const number of numbersIn(readFileSync(join(ROOT, file), 'utf8'))) found.get(number)?.push(file);
  }
  return found;
}

/** The table of docs/figures/security.md. */
export function threatsTable(): string {
  const rows = [...testsOfThreats()].map(([number, files]) => {
    const [threat, outcome] = THREATS[number] ?? ['', ''];
    return `| ${number} | ${threat} | ${outcome} | ${files.map((file) => `\`${file.slice('test/'.length).replace(/\.test\.ts$/, '')}\``).join(', ')} |`;
  });
  return ['| | what may come | what comes of it | shown in `test/` |', '|---|---|---|---|', ...rows].join('\n');
}

function testFiles(): string[] {
  return readdirSync(join(ROOT, 'test'), { recursive: true, encoding: 'utf8' })
    .filter((name) => /^(?!.*node_modules).*\.(?:test|perf|interop)\.ts$/.test(name))
    .filter((name) => !name.endsWith('threats-table.test.ts'))
    .map((name) => `test/${name.split(sep).join('/')}`)
    .sort();
}

function numbersIn(source: string): Set<number> {
  const metas = source.match(/threats: \[[\d, ]+\]/g) ?? [];
  return new Set(metas.flatMap((meta) => (meta.match(/\d+/g) ?? []).map(Number)));
}
