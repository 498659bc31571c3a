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
  /** Length of the answer that is being received; unknown while its head is not there. */
  #expected = -1;
  #headLength = 0;
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
    if (this.#expected < 0) this.#readHead();
    if (this.#expected < 0 || this.#received.length < this.#expected) return;
    const head = this.#received.slice(0, this.#headLength);
    const body = this.#received.slice(this.#headLength, this.#expected);
    this.#received = '';
    this.#expected = -1;
    const { resolve } = this.#waiting;
    this.#waiting = undefined;
    resolve({ status: Number(head.slice(9, 12)), head, body });
  }

  #readHead() {
    const end = this.#received.indexOf(HEAD_END);
    if (end < 0) return;
    const head = this.#received.slice(0, end);
    const length = /\r\ncontent-length: *(\d+)/i.exec(head)?.[1];
    if (length === undefined && /\r\ntransfer-encoding:/i.test(head)) throw new Error(`Not understood: ${head}`);
    this.#headLength = end + HEAD_END.length;
    this.#expected = this.#headLength + Number(length ?? 0);
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
  return Object.entries(cookies)
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => `${name}=${value}`)
    .join('; ');
}

export function locationOf(head) {
  return /\r\nlocation: *([^\r]+)/i.exec(head)?.[1];
}
