// Salesforce ends a grant whose refresh token is used twice. Twenty callers in two processes meet its end of a session, over one Redis.
import dns from 'node:dns';
import { readFileSync, writeFileSync } from 'node:fs';
import jsforce from 'jsforce';
import { lookup, startEmulator } from '../../dist/emulator.js';
import { salesforce } from '../../dist/providers.js';
import { redisTokenStore } from '../../dist/redis.js';
import { tenants } from '../../dist/tenants.js';
import { startChild } from '../lib/child.mjs';
import { redisClient, startRedis } from '../lib/databases.mjs';
import { answerTasks, argument } from '../lib/tasks.mjs';
import { asMarkdown } from '../report/format.mjs';

const CALLERS = 20;
const LATENCY_MS = 20;
const TENANT = 'acme';
const PATH = '/projects';
const PAGE = new URL('../../docs/performance.md', import.meta.url);

/** How each way calls the API with the tokens of one user, in one of two processes. */
const WAYS = {
  'passport-oauth-app, `tenants()`': async ({ redis, options }) => {
    const shops = oursOver(redis, options);
    return () => shops.client({ tenant: TENANT, grantId: '1' }).get(PATH);
  },
  'jsforce, a connection for each user': async (given) => {
    const connection = await connectionOf(given);
    return () => connection.request(`/services/data${PATH}`);
  },
  'jsforce, a connection for each request': async (given) => async () =>
    (await connectionOf(given)).request(`/services/data${PATH}`),
  'by hand: refresh at a 401 and save': async (given) => byHand(given, (refresh) => refresh()),
  'by hand, with one refresh at a time in a process': async (given) => {
    let running;
    return byHand(given, (refresh) => {
      running ??= refresh().finally(() => (running = undefined));
      return running;
    });
  },
};

// The peers know no other host than the tenant's, below localhost.
dns.lookup = lookup;
if (process.send) await call();
else await compare();

/** The command. */
async function compare() {
  const database = await startRedis();
  const redis = await redisClient(database.url);
  const rows = [];
  for (const way of Object.keys(WAYS)) {
    const service = await startEmulator({
      profile: 'salesforce',
      tenants: [TENANT],
      latency: [LATENCY_MS, LATENCY_MS],
    });
    const options = service.optionsOf(TENANT);
    await logIn(service, redis, options);
    const given = { way, options, redisUrl: database.url };
    const processes = await Promise.all([1, 2].map(() => startChild('peers/salesforce.mjs', given)));
    const callAll = async (each) =>
      (await Promise.all(processes.map((one) => one.ask('call', each)))).reduce((sum, answered) => sum + answered, 0);
    // Each has called before.
    await callAll(1);
    const before = tokenRequestsTo(service);
    service.expireAccessTokens();
    const answers = await callAll(CALLERS / processes.length);
    const tokenRequests = tokenRequestsTo(service) - before;
    service.expireAccessTokens();
    const lives = (await callAll(1)) === processes.length;
    rows.push([way, tokenRequests, `${answers} of ${CALLERS}`, lives ? 'alive' : 'lost']);
    await Promise.all(processes.map((one) => one.stop()));
    await service.close();
    await redis.flushAll();
  }
  redis.destroy();
  await database.stop();
  const table = asMarkdown([['', 'token requests', 'answers', 'login afterwards'], ...rows]);
  console.log(table);
  const marked = /(<!-- salesforce -->)[\s\S]*?(<!-- end -->)/;
  writeFileSync(PAGE, readFileSync(PAGE, 'utf8').replace(marked, `$1\n\n${table}\n\n$2`));
}

/** Has one of the processes call as often at once; how many got an answer. */
async function call() {
  const { way, options, redisUrl } = argument;
  const redis = await redisClient(redisUrl);
  const one = await WAYS[way]({ redis, options });
  answerTasks('ready', {
    call: async (times) => {
      const results = await Promise.allSettled(Array.from({ length: times }, one));
      return results.filter(({ status }) => status === 'fulfilled').length;
    },
  });
}

/** Logs a user in, and stores the tokens for each way. */
async function logIn(service, redis, options) {
  const { clientID: client_id, clientSecret: client_secret } = options;
  const redirect_uri = 'http://localhost:3000/callback';
  service.register({ clientID: client_id, redirectUrls: [redirect_uri] });
  const query = new URLSearchParams({ response_type: 'code', client_id, redirect_uri, scope: 'api', state: 'x' });
  const callback = await service.approve(`${options.authUrl}${salesforce.authorizationPath}?${query}`);
  const code = new URL(callback).searchParams.get('code');
  const tokens = await tokensFor(options, { grant_type: 'authorization_code', code, redirect_uri, client_secret });
  await redis.set('tokens', JSON.stringify(tokens));
  const shops = oursOver(redis, options);
  await shops.importGrant({ tenant: TENANT, grantId: '1' }, { ...tokens, expiresAt: Date.now() + 3_600_000 });
  await shops.close();
}

function oursOver(redis, options) {
  return tenants({
    ...{
      name: 'org',
      scope: ['api'],
      tokenStore: redisTokenStore(redis),
      callbackURL: 'http://localhost:3000/callback',
    },
    ...{ tenantOf: () => TENANT, resolve: () => options, allowedHosts: [new URL(options.authUrl).host] },
  });
}

/** jsforce as its documentation shows it. The event `refresh` is for saving. */
async function connectionOf({ redis, options: { authUrl, clientID: clientId, clientSecret } }) {
  const oauth2 = new jsforce.OAuth2({ clientId, clientSecret, loginUrl: authUrl });
  const stored = JSON.parse(await redis.get('tokens'));
  const connection = new jsforce.Connection({ oauth2, instanceUrl: authUrl, ...stored });
  connection.on('refresh', (accessToken, { refresh_token: refreshToken = stored.refreshToken }) =>
    redis.set('tokens', JSON.stringify({ accessToken, refreshToken })),
  );
  return connection;
}

/** What applications write: read, call, refresh at a 401, save, call again. */
function byHand({ redis, options }, limited) {
  const read = async () => JSON.parse(await redis.get('tokens'));
  const send = ({ accessToken }) =>
    fetch(`${options.baseUrl}${salesforce.apiPath}${PATH}`, { headers: { authorization: `Bearer ${accessToken}` } });
  const refresh = async () => {
    const { refreshToken: refresh_token } = await read();
    const { clientSecret: client_secret } = options;
    const tokens = await tokensFor(options, { grant_type: 'refresh_token', refresh_token, client_secret });
    await redis.set('tokens', JSON.stringify(tokens));
    return tokens;
  };
  return async () => {
    const response = await send(await read());
    const last = response.status === 401 ? await send(await limited(refresh)) : response;
    if (!last.ok) throw new Error(`status ${last.status}`);
  };
}

async function tokensFor({ authUrl, clientID: client_id }, parameters) {
  const body = new URLSearchParams({ client_id, ...parameters });
  const response = await fetch(`${authUrl}${salesforce.tokenPath}`, { method: 'POST', body });
  const { access_token: accessToken, refresh_token: refreshToken, error } = await response.json();
  if (!response.ok) throw new Error(error);
  return { accessToken, refreshToken };
}

function tokenRequestsTo({ requests }) {
  return requests.filter(({ path }) => path === salesforce.tokenPath).length;
}
