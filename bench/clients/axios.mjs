import { Agent } from 'node:http';
import axios from 'axios';
import { HEADERS } from './common.mjs';

export function createClient({ baseUrl }) {
  const client = axios.create({ baseURL: baseUrl, headers: HEADERS, httpAgent: new Agent({ keepAlive: true }) });
  return async () => (await client.get('/api/v2/projects')).data;
}
