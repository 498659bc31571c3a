import { Agent } from 'undici';

/** The limit: node:http alone, one fixed token, undici's dispatcher, no login and no session. */
export function createApp({ service }) {
  const agent = new Agent();
  const headers = ['authorization', 'Bearer fixed'];
  function handler(req, res) {
    if (req.url === '/login') return res.writeHead(302, { Location: '/', 'Content-Length': '0' }).end();
    agent.dispatch({ origin: service.url, path: '/api/v2/projects', method: 'GET', headers }, new JsonAnswer(res));
  }
  return { handler };
}

/** Parses the answer and sends it on, as the other applications do. */
class JsonAnswer {
  #res;
  #chunks = [];

  constructor(res) {
    this.#res = res;
  }

  onRequestStart() {}
  onResponseStart() {}

  onResponseData(_controller, chunk) {
    this.#chunks.push(chunk);
  }

  onResponseEnd() {
    const body = JSON.stringify(JSON.parse(Buffer.concat(this.#chunks).toString()));
    this.#res
      .writeHead(200, { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(body) })
      .end(body);
  }

  onResponseError(_controller, error) {
    this.#res.destroy(error);
  }
}
