import { once } from 'node:events';
import { createServer } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { answerTasks, argument } from '../lib/tasks.mjs';
import { tokenEndpoint } from './tokens.mjs';
import { answerText, readRequests } from './wire.mjs';

/**
 * The service, as fast as it can be made: HTTP read off the socket, an API that gives the same list to everybody, a token endpoint
 * that takes JSON and forms, and what OpenID Connect asks for. On two cores a service that took its time would hide what is
 * measured; the emulator, which checks everything, serves where behaviour and not speed is looked at.
 */

const CREDENTIALS = { clientID: 'bench-client', clientSecret: 'bench-secret-that-is-long-enough-for-hs256' };

/** About 400 bytes each, as the API of such a service lists them. */
const PROJECTS = Array.from({ length: argument.projects ?? 5 }, (_none, index) => ({
  data: {
    id: index + 1,
    userId: 1,
    name: `Project ${index + 1}`,
    identifier: `project-${index + 1}`,
    description: 'The texts of the website, of the help pages and of all mails that customers get.',
    sourceLanguageId: 'en',
    targetLanguageIds: ['de', 'fr', 'es', 'it', 'pt-BR', 'ja', 'zh-CN'],
    visibility: 'private',
    createdAt: '2026-01-05T08:30:00+00:00',
    updatedAt: '2026-02-11T17:05:00+00:00',
    lastActivity: '2026-02-11T17:05:00+00:00',
  },
}));
const API_ANSWER = answerText(200, JSON.stringify({ data: PROJECTS, pagination: { offset: 0, limit: 500 } }));

const onSocket = (socket) => readRequests(socket, (request) => void serve(socket, request));
const server = createServer({ noDelay: true }, onSocket).listen(0, '127.0.0.1');
await once(server, 'listening');

const issuer = `http://127.0.0.1:${server.address().port}`;
const tokens = tokenEndpoint({ issuer, ...CREDENTIALS, ...argument });
const { tokenDelayMs = 0 } = argument;
/** Token requests that are worked on at once; the others wait in the order in which they came. */
let freePlaces = argument.tokenCapacity ?? Infinity;
const queue = [];

answerTasks({ url: issuer, ...CREDENTIALS }, { stats: tokens.takeStats, seed: tokens.seed });

async function serve(socket, { path, head, body }) {
  if (path.startsWith('/api/v2/projects')) return socket.write(API_ANSWER, 'latin1');
  if (path === '/oauth/token') return await serveToken(socket, fieldsOf(head, body));
  if (path === '/.well-known/openid-configuration') return socket.write(answerText(200, JSON.stringify(discovery())));
  return socket.write(answerText(404, '{}'));
}

async function serveToken(socket, fields) {
  tokens.started();
  if (freePlaces === 0) await new Promise((resolve) => queue.push(resolve));
  else freePlaces -= 1;
  if (tokenDelayMs > 0) await pause(tokenDelayMs);
  const next = queue.shift();
  if (next) next();
  else freePlaces += 1;
  const { status, body } = tokens.answer(fields);
  socket.write(answerText(status, JSON.stringify(body)));
}

function fieldsOf(head, body) {
  const isJson = /\r\ncontent-type: *application\/json/i.test(head);
  return isJson ? JSON.parse(body) : Object.fromEntries(new URLSearchParams(body));
}

function discovery() {
  return {
    issuer,
    authorization_endpoint: `${issuer}/oauth/authorize`,
    token_endpoint: `${issuer}/oauth/token`,
    jwks_uri: `${issuer}/jwks`,
    response_types_supported: ['code'],
    response_modes_supported: ['query'],
    subject_types_supported: ['public'],
    id_token_signing_alg_values_supported: ['HS256'],
  };
}
