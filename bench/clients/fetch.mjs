import { HEADERS } from './common.mjs';

export function createClient({ baseUrl }) {
  const url = `${baseUrl}/api/v2/projects`;
  return async () => (await fetch(url, { headers: HEADERS })).json();
}
