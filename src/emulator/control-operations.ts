import { record } from './checks.js';
import type { Application, EmulatorUser } from './directory.js';
import type { QueuedFault } from './faults.js';
import type { ServiceRequest } from './server.js';
import type { Controls } from './state.js';

/** Fields of a control request's body. */
export type ControlFields = Readonly<Record<string, unknown>>;

/** A JSON Schema of OpenAPI 3.1. */
export type Schema = Readonly<Record<string, unknown>>;

/** A control request: what it does, and how the OpenAPI document describes it. */
export interface ControlOperation {
  readonly method: 'GET' | 'POST' | 'DELETE';
  /** Below `/_emulator`. `{id}` stands for a number. */
  readonly path: string;
  readonly summary: string;
  /** Status of a success. */
  readonly status: 200 | 201;
  readonly body?: Schema;
  readonly answer: Schema;
  readonly handle: (controls: Controls, fields: ControlFields, id: number) => unknown;
}

/** A result that is JSON already. */
export class JsonText {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

const string = { type: 'string' };
const number = { type: 'number' };
const object = { type: 'object' };
const ref = (name: string): Schema => ({ $ref: `#/components/schemas/${name}` });
const listOf = (items: Schema): Schema => ({ type: 'array', items });
const fields = (properties: Readonly<Record<string, Schema>>, required = Object.keys(properties)): Schema => ({
  type: 'object',
  properties,
  required,
});

/** Named schemas of the OpenAPI document. */
export const schemas: Readonly<Record<string, Schema>> = {
  Request: fields(
    {
      method: string,
      path: string,
      query: object,
      headers: object,
      body: { description: 'Parsed if it is JSON, text if it is textual, else base64.' },
      bodyEncoding: { const: 'base64' },
      outcome: { description: 'Status of the response, or hang, reset or gone. Missing while in progress.' },
    },
    ['method', 'path', 'query', 'headers'],
  ),
  Fault: fields(
    {
      endpoint: { enum: ['authorize', 'token', 'revoke', 'api'] },
      status: { type: 'integer', minimum: 200, maximum: 599 },
      headers: { type: 'object', additionalProperties: string },
      body: { description: 'Text, or any JSON value.' },
      hang: { type: 'boolean' },
      reset: { type: 'boolean' },
      delay: { description: 'Milliseconds, or a range of them.', oneOf: [number, { type: 'array', items: number }] },
      afterEffect: { type: 'boolean' },
      times: { description: 'Default 1; null for every request.', type: ['integer', 'null'] },
      rate: { type: 'number', exclusiveMinimum: 0, maximum: 1 },
      tenant: { description: 'Affects requests to the host of this tenant only.', type: 'string' },
    },
    ['endpoint'],
  ),
  QueuedFault: {
    allOf: [ref('Fault'), fields({ id: { type: 'integer' } })],
  },
  User: fields(
    { id: string, name: string, domain: string, projects: listOf(object), claims: object, tokenFields: object },
    ['id', 'name'],
  ),
  Application: fields(
    { clientID: string, clientSecret: string, name: string, redirectUrls: listOf(string), tenant: string },
    ['redirectUrls'],
  ),
  Installation: fields(
    {
      ...{ appId: string, appSecret: string, clientId: string, userId: string, agentId: string },
      ...{ organizationId: number, domain: string, baseUrl: string, code: string },
    },
    ['appId', 'appSecret', 'clientId', 'organizationId', 'baseUrl'],
  ),
  Error: fields({ error: fields({ message: string, code: string, option: string }, ['message', 'code']) }),
};

/** All control requests. */
export const operations: readonly ControlOperation[] = [
  {
    method: 'GET',
    path: '/requests',
    summary: 'Lists the recorded requests, oldest first',
    status: 200,
    answer: listOf(ref('Request')),
    // One by one: a small body may be a large object, and there are many.
    handle: ({ state: { requests: log } }) =>
      new JsonText(`[${log.requests.map((request) => JSON.stringify(shownRequest(request, log))).join(',')}]`),
  },
  {
    method: 'DELETE',
    path: '/requests',
    summary: 'Removes the recorded requests',
    status: 200,
    answer: object,
    handle: (controls) => {
      controls.clearRequests();
      return {};
    },
  },
  {
    method: 'GET',
    path: '/faults',
    summary: 'Lists the queued faults, in order',
    status: 200,
    answer: listOf(ref('QueuedFault')),
    handle: ({ state }) => state.faults.queue.map(shownFault),
  },
  {
    method: 'POST',
    path: '/faults',
    summary: 'Queues a fault',
    status: 201,
    body: ref('Fault'),
    answer: ref('QueuedFault'),
    handle: (controls, { endpoint, times, ...fault }) => {
      const repeat = times === null ? { times: Number.POSITIVE_INFINITY } : times === undefined ? {} : { times };
      const added = controls.fail(endpoint, { ...fault, ...repeat });
      return controls.state.faults.queue.filter(({ id }) => id === added).map(shownFault)[0];
    },
  },
  {
    method: 'DELETE',
    path: '/faults',
    summary: 'Removes all queued faults',
    status: 200,
    answer: fields({ removed: number }),
    handle: (controls) => ({ removed: controls.removeFaults() }),
  },
  {
    method: 'DELETE',
    path: '/faults/{id}',
    summary: 'Removes a queued fault',
    status: 200,
    answer: fields({ removed: number }),
    handle: (controls, _fields, id) => ({ removed: controls.removeFault(id) ? 1 : 0 }),
  },
  {
    method: 'GET',
    path: '/users',
    summary: 'Lists the accounts',
    status: 200,
    answer: listOf(ref('User')),
    handle: ({ state }): readonly EmulatorUser[] => [...state.users.byId.values()],
  },
  {
    method: 'POST',
    path: '/users',
    summary: 'Adds an account, or replaces the one with the same id',
    status: 201,
    body: ref('User'),
    answer: ref('User'),
    handle: (controls, user): EmulatorUser => {
      controls.addUser(user);
      return controls.state.users.require(String(user.id));
    },
  },
  {
    method: 'POST',
    path: '/applications',
    summary: 'Registers an application, or further redirect URLs of a known one',
    status: 201,
    body: ref('Application'),
    answer: ref('Application'),
    handle: (controls, registration): Application => controls.register(registration),
  },
  {
    method: 'GET',
    path: '/tenants',
    summary: 'Lists the tenants, with the options of a strategy for each',
    status: 200,
    answer: listOf(fields({ tenant: string, options: object })),
    handle: (controls) => controls.tenants(),
  },
  {
    method: 'POST',
    path: '/installations',
    summary: 'Installs an application in the organization of a user, and returns the Installed event',
    status: 201,
    body: fields({ userId: string, appId: string, clientID: string, authentication: string }, []),
    answer: ref('Installation'),
    handle: (controls, given) => controls.install(given),
  },
  {
    method: 'DELETE',
    path: '/installations',
    summary: 'Removes an installation, ends its grants, and returns the Uninstall event',
    status: 200,
    body: fields({ appId: string, userId: string }, []),
    answer: ref('Installation'),
    handle: (controls, given) => controls.uninstall(given),
  },
  {
    method: 'POST',
    path: '/revoke',
    summary: 'Ends all grants of a user',
    status: 200,
    body: fields({ userId: string }),
    answer: fields({ grants: number }),
    handle: (controls, given) => ({ grants: controls.revoke(record('The body', given, ['userId']).userId) }),
  },
  {
    method: 'POST',
    path: '/expire-access-tokens',
    summary: 'Refuses all access tokens issued so far, although they have not expired',
    status: 200,
    answer: object,
    handle: (controls) => {
      controls.expireAccessTokens();
      return {};
    },
  },
  {
    method: 'POST',
    path: '/limit',
    summary: 'Limits the API requests of one account at once; null for no limit',
    status: 200,
    body: fields({ concurrency: { type: ['integer', 'null'] } }),
    answer: object,
    handle: (controls, given) => {
      controls.limit(record('The body', given, ['concurrency']).concurrency);
      return {};
    },
  },
  {
    method: 'POST',
    path: '/advance',
    summary: 'Moves the time of the service forward',
    status: 200,
    body: fields({ seconds: number }),
    answer: fields({ now: string }),
    handle: (controls, given) => {
      controls.advance(record('The body', given, ['seconds']).seconds);
      return { now: new Date(controls.state.clock.now()).toISOString() };
    },
  },
  {
    method: 'POST',
    path: '/reset',
    summary: 'Removes faults, recorded requests and grants, and restores users and time. Applications stay registered',
    status: 200,
    answer: object,
    handle: (controls) => {
      controls.reset();
      return {};
    },
  },
];

function shownRequest(request: ServiceRequest, log: Controls['state']['requests']): unknown {
  const outcome = log.records.get(request)?.result?.outcome;
  const { body } = request;
  if (!(body instanceof Uint8Array)) return { ...request, outcome };
  return { ...request, body: Buffer.from(body).toString('base64'), bodyEncoding: 'base64', outcome };
}

function shownFault({ id, endpoint, fault, left }: QueuedFault): unknown {
  const body = fault.body instanceof Uint8Array ? Buffer.from(fault.body).toString('base64') : fault.body;
  return { id, endpoint, ...fault, body, times: Number.isFinite(left) ? left : null };
}
