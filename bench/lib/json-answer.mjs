/** A handler for undici's dispatcher that does nothing but collect the body and parse it. */
export class JsonAnswer {
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
