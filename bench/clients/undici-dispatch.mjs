import { Agent } from 'undici';
import { JsonAnswer } from '../lib/json-answer.mjs';
import { TOKEN } from './common.mjs';

const HEADERS = ['authorization', `Bearer ${TOKEN}`, 'accept', 'application/json'];

/** The limit: undici's dispatcher with a handler that does nothing but collect the body and parse it. */
export function createClient({ baseUrl }) {
  const agent = new Agent();
  const options = { origin: baseUrl, path: '/api/v2/projects', method: 'GET', headers: HEADERS };
  return () => new Promise((resolve, reject) => agent.dispatch(options, new JsonAnswer(resolve, reject)));
}
