import type { ApiRequest, EmulatorRoute } from './api-routes.js';
import { single } from './query.js';
import { refusal } from './reply.js';

const defaultLimit = 25;
const maxLimit = 500;

/**
 * The resources that are always there. service.md names the first one only, and shows the payload of none.
 *
 * @see service.md section 4.4
 */
export const sampleRoutes: readonly EmulatorRoute[] = [
  { method: 'GET', path: '/projects', handler: projects },
  { method: 'GET', path: '/user', handler: user },
];

function projects({ user, query }: ApiRequest): unknown {
  const limit = pageNumber(single(query, 'limit') ?? String(defaultLimit), 1, maxLimit);
  const offset = pageNumber(single(query, 'offset') ?? '0', 0, Number.MAX_SAFE_INTEGER);
  if (limit === undefined || offset === undefined) return badPage();
  const data = (user.projects ?? []).slice(offset, offset + limit).map((project) => ({ data: project }));
  return { data, pagination: { offset, limit } };
}

function pageNumber(text: string, min: number, max: number): number | undefined {
  const number = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN;
  return number >= min && number <= max ? number : undefined;
}

function badPage(): unknown {
  return refusal(400, 'invalid_request', `limit must be from 1 to ${maxLimit}, and offset 0 or more.`);
}

function user({ user: { id, name, domain } }: ApiRequest): unknown {
  return { data: { id, fullName: name, organization: domain ?? null } };
}
