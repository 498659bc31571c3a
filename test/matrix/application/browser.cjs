const { request } = require('node:http');

/** As much of a browser as a login needs: cookies, and redirects within the application. */
class Browser {
  #cookies = new Map();
  #origin;

  constructor(origin) {
    this.#origin = origin;
  }

  /** One request; redirects are not followed. */
  async visit(url, { method = 'GET', accept = 'text/html' } = {}) {
    const cookie = [...this.#cookies].map((pair) => pair.join('=')).join('; ');
    const headers = { accept, ...(cookie === '' ? {} : { cookie }) };
    const answer = await send(new URL(url, this.#origin), { method, headers });
    for (const line of answer.headers['set-cookie'] ?? []) this.#keep(line);
    return { status: answer.statusCode, location: answer.headers.location ?? null, text: answer.text };
  }

  /** Visits a page and follows redirects, as long as they lead to the application. */
  async open(url) {
    let page = await this.visit(url);
    for (let hops = 0; page.location !== null && this.#isOwn(page.location) && hops < 10; hops += 1) {
      page = await this.visit(page.location);
    }
    return page;
  }

  #isOwn(location) {
    return new URL(location, this.#origin).origin === new URL(this.#origin).origin;
  }

  #keep(line) {
    const [pair, ...attributes] = line.split(';');
    const at = pair.indexOf('=');
    const gone = attributes.some((one) => /^\s*(max-age=0|expires=thu, 01 jan 1970.*)$/i.test(one));
    if (gone) this.#cookies.delete(pair.slice(0, at));
    else this.#cookies.set(pair.slice(0, at), pair.slice(at + 1));
  }
}

/** Not by fetch: it says of itself that it is a script. */
async function send(url, options) {
  const answer = await new Promise((resolve, reject) => {
    request(url, { agent: false, ...options })
      .on('response', resolve)
      .on('error', reject)
      .end();
  });
  const chunks = await answer.toArray();
  return Object.assign(answer, { text: Buffer.concat(chunks).toString() });
}

module.exports = { Browser };
