import { Agent } from 'undici';
import { TOKEN } from './common.mjs';

const HEADERS = ['authorization', `Bearer ${TOKEN}`, 'accept', 'application/json'];

/** The limit: undici's dispatcher with a handler that does nothing but collect the body and parse it. */
export function createClient({ baseUrl }) {
  const agent = new Agent();
  const options = { origin: baseUrl, path: '/api/v2/projects', method: 'GET', headers: HEADERS };
  return () => new Promise((resolve, reject) => agent.dispatch(options, new JsonAnswer(resolve, reject)));
}

class JsonAnswer {
  #resolve;
  #reject;
  #body;

  constructor(resolve, reject) {
    this.#resolve = resolve;
    this.#reject = reject;
  }

  onRequestStart() {}
  onResponseStart() {}

  onResponseData(_controller, chunk) {
    this.#body = this.#body === undefined ? chunk : Buffer.concat([this.#body, chunk]);
  }

  onResponseEnd() {
    this.#resolve(JSON.parse(this.#body.toString()));
  }

  onResponseError(_controller, error) {
    this.#reject(error);
  }
}
