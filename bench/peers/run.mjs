import { readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { setImmediate as turn } from 'node:timers/promises';
import { memoryTokenStore, Strategy } from '../../dist/index.js';
import { asMarkdown } from '../report/format.mjs';
import { inTurn, PEERS } from './peers.mjs';
import { startServer } from './server.mjs';

/** Ends tokens as time does: packages read the clock themselves. */
let passedMs = 0;
const RealDate = Date;
globalThis.Date = class extends RealDate {
  constructor(...given) {
    super(...(given.length === 0 ? [RealDate.now() + passedMs] : given));
  }
  static now() {
    return RealDate.now() + passedMs;
  }
};
const LIFETIME_MS = 7_200_000;

/** The command: 20 callers find the access token of one user expired. Which of them get an answer, and does the login live? */
const CALLERS = 20;
const PAGE = new URL('../../docs/performance.md', import.meta.url);
const require = createRequire(import.meta.url);

const rows = [];
for (const [name, peer] of Object.entries({ 'passport-oauth-app, two processes': ours, ...PEERS })) {
  const [, packageName] = /^(@?[^, ]+)/.exec(name);
  const version = peer === ours ? '' : ` ${versionOf(packageName)}`;
  const [alone, together] = [await meet(name, peer, 1), await meet(name, peer, CALLERS)];
  const answers = `${together.answers} of ${CALLERS}`;
  rows.push([
    name.replace(packageName, packageName + version),
    together.tokenRequests,
    answers,
    together.login,
    alone.login,
  ]);
}
const table = asMarkdown([['', 'token requests', 'answers', 'login after 20 callers', 'after one'], ...rows]);
console.log(table);
const marked = /(<!-- peers -->)[\s\S]*?(<!-- end -->)/;
writeFileSync(PAGE, readFileSync(PAGE, 'utf8').replace(marked, `$1\n\n${table}\n\n$2`));
process.exit();

function versionOf(name) {
  const [, file] = /^([\s\S]*[\\/]node_modules[\\/](?:@[^\\/]+[\\/])?[^\\/]+)/.exec(require.resolve(name));
  return JSON.parse(readFileSync(`${file}/package.json`, 'utf8')).version;
}

async function meet(name, peer, callers) {
  const server = await startServer();
  let tokens = { ...server.logIn(), expires_at: Date.now() + LIFETIME_MS };
  // A database answers later.
  const store = {
    read: async () => {
      await turn();
      return tokens;
    },
    save: async (response) => {
      const saved = { ...tokens, ...response, expires_at: Date.now() + LIFETIME_MS };
      await turn();
      tokens = saved;
    },
  };
  const token = await peer(server.origin, store);
  const expire = () => {
    passedMs += LIFETIME_MS;
    server.expire();
  };
  const call = async () => {
    try {
      const headers = { authorization: `Bearer ${await token()}` };
      return (await fetch(`${server.origin}/api`, { headers })).ok;
    } catch (error) {
      if (process.argv.includes('--errors')) console.error(`${name}: ${error.stack}`);
      return false;
    }
  };
  expire();
  const answers = await Promise.all(Array.from({ length: callers }, call));
  const { tokenRequests } = server.counts;
  expire();
  const lives = await call();
  server.close();
  return { tokenRequests, answers: answers.filter(Boolean).length, login: lives ? 'alive' : 'lost' };
}

async function ours(origin, store) {
  const { access_token: accessToken, refresh_token: refreshToken, expires_at: expiresAt } = await store.read();
  const tokenStore = memoryTokenStore();
  // One for each of two processes.
  const strategies = [1, 2].map(
    () =>
      new Strategy({
        ...{ authUrl: origin, baseUrl: origin, clientID: 'client', clientSecret: 'secret', scope: ['api'] },
        ...{ callbackURL: `${origin}/callback`, organizationDomain: undefined, tokenStore },
      }),
  );
  await strategies[0].importGrant('ada', { accessToken, refreshToken, expiresAt });
  return inTurn(strategies.map((strategy) => () => strategy.client('ada').accessToken()));
}
