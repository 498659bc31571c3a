import { gzipSync } from 'node:zlib';
import { chainedEncodings, drip, hangUp, html, huge, truncated } from '../support/broken-answers.js';
import { answer, type Behaviour, hang, json, type ReceivedRequest, raw, reset } from '../support/faulty-server.js';

/** How one request of a browser ends: status, name of the error where there is one, and requests or connections at the service. */
export type Expected = readonly [status: number, error: string, requests: number];

/** What goes wrong, at the token endpoint or the API, for as long as nobody heals it. */
export type Trouble =
  /** No connection comes about; the code is that of Node's error. */
  | { readonly connect: string }
  /** The service does this. */
  | { readonly does: Behaviour }
  /** The service serves the request, and does this in the place of its answer. */
  | { readonly afterEffect: Behaviour };

/** One row: a fault, and what comes of it at each moment. */
export interface Row {
  readonly fault: string;
  readonly trouble: Trouble;
  /** The callback of a login, while the token endpoint has the fault. Afterwards nothing is stored, and a new login works. */
  readonly login: Expected;
  /** A request whose token has expired, while the token endpoint has the fault. */
  readonly refresh: Expected;
  /** Token requests of a refresh in the background, while the token is still good: the page is 200 in all rows. */
  readonly ahead: number;
  /** A call, while the API has the fault. */
  readonly api: Expected;
  /** Token requests that the call of the API makes. Default 0. */
  readonly renewals?: number;
  /** The answer counts as that of a revocation, which has none but its status. In all other rows the revocation has failed. */
  readonly isRevoked?: boolean;
  /** The service has said that the refresh token is no good: the user has to log in again. In all other rows nobody has. */
  readonly endsGrant?: true;
  /** The answer never ends: each request takes as long as its time limit lets it. */
  readonly endless?: true;
}

/** An answer that repeats all that was sent: nothing of it may show. */
function quoting(status: number, wrap: (sent: string) => unknown = (sent) => ({ message: sent })): Behaviour {
  return (socket, request) => {
    // The API asks for more patience than a call has.
    const isLong = status === 429 && request.headers.authorization !== undefined;
    json(wrap(sentIn(request)), status, isLong ? { 'retry-after': '31' } : {})(socket, request);
  };
}

function sentIn({ headers, body }: ReceivedRequest): string {
  return `${headers.authorization ?? ''} ${body.toString()}`;
}

const SERVICE = 'ServiceUnavailableError';
const RESPONSE = 'TokenResponseError';
const UNAVAILABLE: Expected = [503, SERVICE, 1];
const bomb = gzipSync(Buffer.alloc(80 * 1024 * 1024));
const jwt = (claims: object) => `e30.${Buffer.from(JSON.stringify(claims)).toString('base64url')}.x`;
const tokens = { access_token: jwt({ sub: '1' }), token_type: 'bearer', expires_in: 7200, refresh_token: 'r' };

/** A row in which login and refresh end in the same way, whoever waits for the refresh. */
function row(fault: string, trouble: Trouble, atToken: Expected, api: Expected): Row {
  return { fault, trouble, login: atToken, refresh: atToken, ahead: atToken[2], api };
}

/** A refusal in any shape: a page goes to the login, which replaces the grant. */
const refused = (fault: string, does: Behaviour, api: Expected, error = 'TokenError'): Row => ({
  ...row(fault, { does }, [502, error, 1], api),
  refresh: [302, '', 1],
});

const connections = ['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'ENETUNREACH', 'CERT_HAS_EXPIRED'].map((connect) =>
  row(`no connection (${connect})`, { connect }, [503, SERVICE, 2], [503, SERVICE, 3]),
);

/** The answer never comes in full. What left is not sent again to the token endpoint; an idempotent call of the API is, unless its time is over. */
const silences: Row[] = [
  { ...row('the answer hangs', { does: hang() }, UNAVAILABLE, UNAVAILABLE), endless: true },
  { ...row('the answer drips', { does: drip(20, 5000) }, UNAVAILABLE, UNAVAILABLE), endless: true },
  row('a reset before the effect', { does: reset() }, UNAVAILABLE, [503, SERVICE, 3]),
  row('a reset after the effect', { afterEffect: reset() }, UNAVAILABLE, [503, SERVICE, 3]),
  row('a hang-up before the effect', { does: hangUp() }, UNAVAILABLE, [503, SERVICE, 3]),
  row('a hang-up after the effect', { afterEffect: hangUp() }, UNAVAILABLE, [503, SERVICE, 3]),
  row('half an answer', { does: truncated() }, UNAVAILABLE, [503, SERVICE, 3]),
];

const statuses = [500, 502, 503, 504, 429, 408].map((status) => {
  const api = [status, 'ApiError', status >= 502 ? 3 : 1] as const;
  return row(`status ${status}, which quotes the request`, { does: quoting(status) }, UNAVAILABLE, api);
});

const refusal = (error: string): Row =>
  refused(
    `the refusal ${error}, which quotes the request`,
    quoting(400, (sent) => ({ error, error_description: sent })),
    [400, 'ApiError', 1],
  );

const refusals: Row[] = [
  {
    ...refused('status 401 whatever the token is, which quotes the request', quoting(401), [401, 'ApiError', 2]),
    renewals: 1,
  },
  ...[400, 403, 404, 422].map((status) =>
    refused(`status ${status} without an OAuth error, which quotes the request`, quoting(status), [
      status,
      'ApiError',
      1,
    ]),
  ),
  ...['unauthorized_client', 'invalid_scope'].map(refusal),
  // A login would be refused too.
  { ...refusal('invalid_client'), refresh: [502, 'TokenError', 1] },
  { ...refusal('invalid_grant'), endsGrant: true },
];

/** Answers that are none. What the API sends is data, as long as it is what its type promises. */
const oddAnswers: Row[] = (
  [
    ['a page of a proxy', html(), [200, '', 1]],
    ['a page of a proxy with status 404', html(404), [404, 'ApiError', 1]],
    ['an empty answer', answer(200, {}), [200, '', 1]],
    ['null', json(null), [200, '', 1]],
    ['a list', json([tokens]), [200, '', 1]],
    ['an error in a 200', json({ error: 'invalid_grant' }), [200, '', 1]],
    [
      'JSON that is cut off',
      answer(200, { 'content-type': 'application/json' }, '{"access_token": "x'),
      [502, 'ApiError', 1],
    ],
    ['a token that is a number', json({ ...tokens, access_token: 7 }), [200, '', 1]],
    ['a token with a line break', json({ ...tokens, access_token: 'a\r\nb' }), [200, '', 1]],
    ['another token type', json({ ...tokens, token_type: 'mac' }), [200, '', 1]],
    [
      'a domain that is no label',
      json({ ...tokens, access_token: jwt({ sub: '1', domain: 'evil.example/' }) }),
      [200, '', 1],
    ],
    ['two encodings', chainedEncodings(), [502, 'ApiError', 1]],
    ['an encoding that nobody knows', answer(200, { 'content-encoding': 'zstd' }, 'x'), [502, 'ApiError', 1]],
    ['a gzip that is none', answer(200, { 'content-encoding': 'gzip' }, 'x'), [502, 'ApiError', 1]],
  ] as const
).map(([fault, does, api]) => {
  const isRevoked = api[0] !== 404 && !fault.startsWith('an error') && !fault.startsWith('a gzip');
  if (fault === 'an error in a 200') return { ...refused(fault, does, api), isRevoked, endsGrant: true };
  return { ...refused(fault, does, api, RESPONSE), isRevoked };
});

const floods: Row[] = [
  ['a body without end', huge(80 * 1024 * 1024)] as const,
  ['a gzip bomb', answer(200, { 'content-type': 'application/json', 'content-encoding': 'gzip' }, bomb)] as const,
].map(([fault, does]) => refused(fault, does, [502, 'ApiError', 1], RESPONSE));

const mail = raw('220 mail.example ESMTP\r\n\r\n');
const notHttp = row('something other than HTTP', { does: mail }, UNAVAILABLE, [502, 'ApiError', 1]);

/** Redirects lead to `elsewhere`, which nobody may ever contact. */
export function redirects(elsewhere: string): Row[] {
  return [301, 302, 307, 308].map((status) =>
    refused(
      `a redirect to another origin (${status})`,
      answer(status, { location: `${elsewhere}/api/v2/projects` }),
      [status, 'ApiError', 1],
      RESPONSE,
    ),
  );
}

/** All rows but the redirects. */
export const MATRIX: readonly Row[] = [
  ...connections,
  ...silences,
  ...statuses,
  ...refusals,
  ...oddAnswers,
  ...floods,
  notHttp,
];
