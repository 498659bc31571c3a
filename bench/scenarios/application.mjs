import { compared, playApps } from '../lib/starts.mjs';

const CONTESTANTS = [
  { name: 'floor', app: 'floor' },
  { name: 'floor, once more', app: 'floor' },
  { name: 'passport-oauth-app', app: 'ours' },
  { name: 'passport-oauth2 by hand, fetch', app: 'hand-written' },
  { name: 'express-openid-connect, fetch', app: 'openid-connect', sessions: 'cookie' },
];

const PASSING_ON = [
  { name: 'pass-through by hand', app: 'floor' },
  { name: 'passport-oauth-app', app: 'ours' },
];

/** `GET /projects` of an application: one request comes in, one goes out to the API. */
export function application(settings) {
  return play(settings, CONTESTANTS, '/projects', 'GET /projects of an application that asks the API');
}

/** The same, and the application passes the answer on as it is: `forward(strategy)`. */
export function forward(settings) {
  return play(settings, PASSING_ON, '/api/projects', 'A request that is passed on to the API');
}

async function play(settings, contestants, path, title) {
  const plays = await playApps(settings, contestants, { path, requests: 300, connections: 50 });
  return { title, rows: compared(plays, contestants[0].name) };
}
