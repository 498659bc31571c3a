import type { ServerResponse } from 'node:http';
import { EmulatorError, isRecord, refuse } from './checks.js';
import { type ControlFields, type ControlOperation, JsonText, operations, schemas } from './control-operations.js';
import { type HostsSetting, isOwnHost } from './hosts.js';
import {
  bodyText,
  type IncomingRequest,
  json,
  mediaType,
  parseJson,
  parseQuery,
  type Reply,
  write,
} from './messages.js';
import type { Controls } from './state.js';

/** Dependencies of the control endpoint. */
export interface ControlSetting {
  readonly controls: Controls;
  readonly hosts: HostsSetting;
  /** Renders the status page. */
  readonly page: (incoming: IncomingRequest) => Reply;
  /** Renders a page that shows an application in a frame; `undefined` if there is none of this id. */
  readonly embedding: (id: string) => Reply | undefined;
}

const prefix = '/_emulator';

/** Path of the pages that show an application in a frame, before their id. */
export const EMBED_PATH: string = `${prefix}/embed/`;

/** Returns the handler of control requests and the status page. It returns false for any other request. */
export function controlEndpoint(
  setting: ControlSetting,
): (incoming: IncomingRequest, response: ServerResponse) => boolean {
  return function serveControl(incoming, response) {
    const { path, method } = incoming;
    if (path !== '/' && path !== prefix && !path.startsWith(`${prefix}/`)) return false;
    const head = method === 'HEAD';
    const refused = refusalFor(incoming, setting.hosts);
    if (refused !== undefined) write(response, refused, { head });
    else if (path.startsWith(EMBED_PATH) && (head || method === 'GET')) {
      const page = setting.embedding(path.slice(EMBED_PATH.length));
      write(response, page ?? error(404, 'There is no such page. embed() gives the address of one.'), { head });
    } else if (path === `${prefix}/events` && method === 'GET') streamChanges(response, setting.controls);
    else if (path !== '/') write(response, answer(incoming, setting.controls), { head });
    else if (head || method === 'GET') write(response, setting.page(incoming), { head });
    else write(response, error(405, 'Only GET, HEAD are supported here.'), { head });
    return true;
  };
}

/** Refuses requests for foreign hosts (DNS rebinding) and from pages of other origins, except that a link may open a page. */
function refusalFor(incoming: IncomingRequest, hosts: HostsSetting): Reply | undefined {
  if (!isOwnHost(incoming, hosts)) return foreignHost(incoming);
  const { origin, 'sec-fetch-site': site, 'sec-fetch-mode': mode, 'sec-fetch-dest': dest } = incoming.headers;
  const isPage = incoming.path === '/' || incoming.path.startsWith(EMBED_PATH);
  const isLink = isPage && mode === 'navigate' && dest === 'document' && origin === undefined;
  const isSameSite = site === undefined || site === 'same-origin' || site === 'none';
  const isSameOrigin = origin === undefined || origin.replace(/^https?:\/\//, '') === incoming.host.toLowerCase();
  if (isSameOrigin && (isSameSite || isLink)) return undefined;
  return error(403, 'Pages of other origins may not control the emulator.');
}

/** Returns the response to a request for a host that is not the emulator's. @see RFC 9110, 15.5.20 */
export function foreignHost({ host }: IncomingRequest): Reply {
  const shown = host.replace(/[^\w.:[\]-]/g, '?').slice(0, 100);
  return error(
    421,
    `The emulator does not serve the host ${shown}. Use a loopback name. With allowRemote, it also serves its own host and ` +
      'IP addresses, and the token endpoint and the API at every host.',
  );
}

function answer(incoming: IncomingRequest, controls: Controls): Reply {
  const below = incoming.path.slice(prefix.length);
  if (below === '/openapi.json') return json(200, openApiDocument(), { 'cache-control': 'no-cache' });
  // curl and Python's urllib send JSON with the content type of a form by default.
  const isForm =
    mediaType(incoming.headers) === 'application/x-www-form-urlencoded' && !bodyText(incoming).startsWith('{');
  // A form of the status page can only POST, so it names another method in the query.
  const isOverride = isForm && incoming.query !== undefined && incoming.query._method === 'DELETE';
  const method = isOverride ? 'DELETE' : incoming.method === 'HEAD' ? 'GET' : incoming.method;
  const [, id = ''] = /^\/faults\/(\d{1,15})$/.exec(below) ?? [];
  const path = id === '' ? below : '/faults/{id}';
  const atPath = operations.filter((operation) => operation.path === path);
  const operation = atPath.find((candidate) => candidate.method === method);
  if (operation === undefined) {
    const allow = atPath.map((candidate) => candidate.method).join(', ');
    if (allow === '') return error(404, `There is no such control. See ${prefix}/openapi.json.`);
    return {
      ...error(405, `Only ${allow} is supported here.`),
      headers: { allow, 'content-type': 'application/json' },
    };
  }
  try {
    const fields = isForm ? formFields(incoming) : jsonFields(incoming, operation);
    const result = operation.handle(controls, fields, Number(id));
    if (result instanceof JsonText) return { ...json(operation.status, undefined), body: result.text };
    // Post/redirect/get, for the forms of the status page.
    return isForm && incoming.headers.accept?.includes('text/html')
      ? { status: 303, headers: { location: '/', 'cache-control': 'no-store' }, body: '' }
      : json(operation.status, result);
  } catch (cause) {
    if (!(cause instanceof EmulatorError)) throw cause;
    return error(400, cause.message, cause);
  }
}

function jsonFields(incoming: IncomingRequest, { body }: ControlOperation): ControlFields {
  if (body === undefined) return {};
  const value = parseJson(bodyText(incoming))?.value;
  return isRecord(value) ? value : refuse('The body', 'a JSON object', value);
}

/** Converts the fields of a form: those without a value are left out, `fault` is a whole fault in JSON, numbers are numbers. */
function formFields(incoming: IncomingRequest): ControlFields {
  const form = parseQuery(bodyText(incoming)) ?? {};
  const fields = Object.entries(form).flatMap(([name, value]): [string, unknown][] => {
    if (value === '') return [];
    if (name === 'fault') {
      const fault = parseJson(String(value))?.value;
      return isRecord(fault) ? Object.entries(fault) : [];
    }
    return [[name, /^(seconds|status|delay|times|rate)$/.test(name) ? Number(value) : value]];
  });
  return Object.fromEntries(fields);
}

function error(status: number, message: string, cause?: EmulatorError): Reply {
  return json(status, { error: { message, code: cause?.code ?? status, option: cause?.option } });
}

/** Streams an event for each change, at most four in a second. @see https://html.spec.whatwg.org/#server-sent-events */
function streamChanges(response: ServerResponse, controls: Controls): void {
  response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-store' });
  response.write('retry: 1000\n\n');
  let timer: NodeJS.Timeout | undefined;
  const stop = controls.onChange(() => {
    timer ??= setTimeout(() => {
      timer = undefined;
      response.write('data: changed\n\n');
    }, 250);
  });
  response.on('close', () => {
    clearTimeout(timer);
    stop();
  });
}

function openApiDocument(): unknown {
  const paths: Record<string, Record<string, unknown>> = {};
  for (const { method, path, summary, status, body, answer: schema } of operations) {
    const content = (of: unknown) => ({ 'application/json': { schema: of } });
    const id = { name: 'id', in: 'path', required: true, schema: { type: 'integer' } };
    paths[`${prefix}${path}`] = {
      ...paths[`${prefix}${path}`],
      [method.toLowerCase()]: {
        summary,
        operationId: `${method.toLowerCase()}-${path.slice(1).replace(/[/{}]+/g, '-')}`.replace(/-$/, ''),
        ...(path.includes('{id}') ? { parameters: [id] } : {}),
        ...(body === undefined ? {} : { requestBody: { required: true, content: content(body) } }),
        responses: {
          [status]: { description: 'Done.', content: content(schema) },
          400: { description: 'The request is malformed.', content: content({ $ref: '#/components/schemas/Error' }) },
          403: { description: 'The request comes from a page of another origin.' },
        },
      },
    };
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Control of the emulator',
      version: '1',
      description: 'Faults, users, revocation, expiry, time and recorded requests of the emulated service.',
    },
    paths,
    components: { schemas },
  };
}
