import { connect } from 'node:net';

const HEAD_END = '\r\n\r\n';

/**
 * One keep-alive connection that sends prepared requests, one after the other.
 *
 * Written for load: on two cores a general HTTP client would take its share of the time from the server that is measured. It
 * understands answers with a `Content-Length`, or without a body.
 */
export class Connection {
  #socket;
  #received = '';
  #waiting;

  /** @param {{ port: number }} target */
  constructor({ port }) {
    this.#socket = connect({ host: '127.0.0.1', port, noDelay: true });
    this.#socket.setEncoding('latin1');
    this.#socket.on('data', (text) => this.#receive(text));
    this.#socket.on('error', (error) => this.#waiting?.reject(error));
    this.#socket.on('close', () => this.#waiting?.reject(new Error('The server closed the connection')));
  }

  /**
   * @param {string} text the request as it goes over the wire
   * @returns {Promise<{ status: number, head: string, body: string }>}
   */
  send(text) {
    return new Promise((resolve, reject) => {
      this.#waiting = { resolve, reject };
      this.#socket.write(text, 'latin1');
    });
  }

  close() {
    this.#waiting = undefined;
    this.#socket.destroy();
  }

  #receive(text) {
    this.#received += text;
    const end = this.#received.indexOf(HEAD_END);
    if (end < 0) return;
    const head = this.#received.slice(0, end + HEAD_END.length);
    const length = /\r\ncontent-length: *(\d+)/i.exec(head)?.[1];
    if (length === undefined && /\r\ntransfer-encoding:/i.test(head)) throw new Error(`Not understood: ${head}`);
    const body = this.#received.slice(head.length);
    if (body.length < Number(length ?? 0)) return;
    const { resolve } = this.#waiting;
    this.#received = '';
    this.#waiting = undefined;
    resolve({ status: Number(head.slice(9, 12)), head, body });
  }
}

/** A GET request as it goes over the wire. @param {Record<string, string>} headers */
export function getRequest(path, port, headers = {}) {
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  return `GET ${path} HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nAccept: application/json\r\n${lines.join('')}\r\n`;
}

/** Name and value of all cookies that an answer sets, by name; `undefined` for those that it ends. */
export function cookiesOf(head) {
  const cookies = {};
  for (const [, name, value, attributes] of head.matchAll(/\r\nset-cookie: *([^=\r]+)=([^;\r]*)([^\r]*)/gi)) {
    cookies[name] = /max-age=0|expires=Thu, 01 Jan 1970/i.test(attributes) || value === '' ? undefined : value;
  }
  return cookies;
}

export function cookieHeader(cookies) {
  const living = Object.entries(cookies).filter(([, value]) => value !== undefined);
  return living.map((pair) => pair.join('=')).join('; ');
}

export function locationOf(head) {
  return /\r\nlocation: *([^\r]+)/i.exec(head)?.[1];
}
