import { Agent } from 'undici';
import { JsonAnswer } from '../lib/json-answer.mjs';

/** The limit: node:http alone, one fixed token, undici's dispatcher, no login and no session. */
export function createApp({ service }) {
  const agent = new Agent();
  const headers = ['authorization', 'Bearer fixed'];
  const request = { origin: service.url, path: '/api/v2/projects', method: 'GET', headers };
  function handler(req, res) {
    if (req.url === '/login') return res.writeHead(302, { Location: '/', 'Content-Length': '0' }).end();
    const send = (answer) => {
      const body = JSON.stringify(answer);
      const head = { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(body) };
      res.writeHead(200, head).end(body);
    };
    agent.dispatch(request, new JsonAnswer(send, (error) => res.destroy(error)));
  }
  return { handler };
}
