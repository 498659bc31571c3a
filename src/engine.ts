import type { IncomingMessage, ServerResponse } from 'node:http';
import type { ApiCalls } from './api/api-calls.js';
import type { ApiClient } from './api/api-client.js';
import type { CredentialSource } from './api/credential.js';
import { type AuthenticateOptions, authenticate, type PassportActions } from './login/authenticate.js';
import type { AnyVerify } from './login/verify.js';
import type { Settings } from './options.js';
import { endLogin } from './request/end-login.js';
import { Application } from './runtime.js';

/** What works behind a strategy. It is loaded when it is first needed: see {@link LateEngine}. */
export class Engine {
  readonly application: Application;
  readonly #verify: AnyVerify | undefined;

  constructor(settings: Settings, verify: AnyVerify | undefined) {
    this.application = new Application(settings);
    this.#verify = verify;
  }

  /** The calls of API clients. */
  get calls(): ApiCalls {
    return this.application.api.calls;
  }

  /** The credentials of a grant, outside of a request. @throws ConfigurationError where no token store is known yet */
  sourceOf(grantId: string): CredentialSource {
    return this.application.sourceOf(grantId);
  }

  /** An API client for a grant, outside of a request. @throws ConfigurationError where no token store is known yet */
  client(grantId: string): ApiClient {
    return this.application.clientOf(this.sourceOf(grantId));
  }

  /** Answers a request to the routes of login and callback. Never rejects. */
  authenticate(actions: PassportActions, req: IncomingMessage, options: AuthenticateOptions): Promise<void> {
    return authenticate({ application: this.application, verify: this.#verify }, actions, req, options);
  }

  /** Gives a request its API client. @returns `undefined` if that was done at once; else a promise that never rejects */
  attach(req: IncomingMessage, res: ServerResponse, property: string): Promise<void> | undefined {
    return this.application.clients.attach(req, res, property);
  }

  /** Deletes the request's grant, and ends the Passport login. */
  endLogin(req: IncomingMessage): Promise<void> {
    return endLogin(this.application, req);
  }

  /** Lets running refreshes and saves finish, and frees connections. */
  close(): Promise<void> {
    return this.application.close();
  }
}
