import { Agent, request } from 'undici';
import { HEADERS } from './common.mjs';

export function createClient({ baseUrl }) {
  const dispatcher = new Agent();
  const url = `${baseUrl}/api/v2/projects`;
  return async () => {
    const { body } = await request(url, { dispatcher, headers: HEADERS });
    return await body.json();
  };
}
