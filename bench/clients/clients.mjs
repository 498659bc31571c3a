import { Agent as HttpAgent } from 'node:http';
import { createRequire } from 'node:module';
import { memoryTokenStore, Strategy } from '../../dist/index.js';
import { JsonAnswer } from '../lib/json-answer.mjs';
import { seedGrant, strategyOptions } from '../lib/seeded-grant.mjs';

/** A token that the client is given once and for all: none of the alternatives knows how to keep one fresh. */
const TOKEN = `header.claims.${'s'.repeat(342)}`;
const HEADERS = { authorization: `Bearer ${TOKEN}`, accept: 'application/json' };
const PATH = '/api/v2/projects';

/** The client of a grant, as handlers and jobs have it. */
export async function ours(service) {
  const strategy = new Strategy({ ...strategyOptions(service), tokenStore: memoryTokenStore() });
  await seedGrant(strategy, '1', Date.now());
  const client = strategy.client('1');
  return () => client.projects();
}

/** The limit: undici's dispatcher with a handler that does nothing but collect the body and parse it. */
export async function undiciDispatch({ url }) {
  const { Agent } = await import('undici');
  const agent = new Agent();
  const options = { origin: url, path: PATH, method: 'GET', headers: Object.entries(HEADERS).flat() };
  return () => new Promise((resolve, reject) => agent.dispatch(options, new JsonAnswer(resolve, reject)));
}

export async function undiciRequest({ url }) {
  const { Agent, request } = await import('undici');
  const dispatcher = new Agent();
  return async () => (await request(url + PATH, { dispatcher, headers: HEADERS })).body.json();
}

export function builtInFetch({ url }) {
  return async () => (await fetch(url + PATH, { headers: HEADERS })).json();
}

export async function axios({ url }) {
  const { default: library } = await import('axios');
  const client = library.create({ baseURL: url, headers: HEADERS, httpAgent: new HttpAgent({ keepAlive: true }) });
  return async () => (await client.get(PATH)).data;
}

/** The SDK that the vendor of such a service publishes. */
export function officialSdk({ url }) {
  const { ProjectsGroups } = createRequire(import.meta.url)('@crowdin/crowdin-api-client');
  const api = new ProjectsGroups({ token: TOKEN, baseUrl: `${url}/api/v2` });
  return () => api.listProjects();
}
