import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import type { Package } from './environment.js';
import type { Call, Delivery, LostAnswer } from './exchange.js';
import type { Damage } from './faults.js';
import type { Machine } from './machine.js';
import type { Mutation } from './mutations.js';
import type { TokenRequest } from './oracle.js';
import { ASSERTION } from './organizations.js';
import { type Family, type TokenAnswer, tokensIn } from './service.js';
import type { Lease } from './store.js';
import { type StoreClient, storeClient } from './store-client.js';
import type { World } from './world.js';

/** How a request of a user ended. */
export type Ending = 'authorized' | 'not authorized' | { readonly code: string };

type TokenStore = NonNullable<ConstructorParameters<Package['Strategy']>[0]['tokenStore']>;
type Strategy = InstanceType<Package['Strategy']>;
type Dispatcher = NonNullable<ConstructorParameters<Package['Strategy']>[0]['dispatcher']>;
type DispatchOptions = Parameters<Dispatcher['dispatch']>[0];
type DispatchHandler = Parameters<Dispatcher['dispatch']>[1];

/** What a mutation may put something else in place of. */
export interface Parts {
  readonly world: World;
  readonly machine: Machine;
  readonly store: StoreClient;
  readonly dispatch: (options: DispatchOptions, handler: DispatchHandler) => boolean;
}

const AUTH = 'https://accounts.example.com';
const API = 'https://api.example.com';
const REVOCATION_PATH = '/oauth/revoke';
const CALLBACK = 'https://app.example.net/callback';

/** One process of the application, with the package in it. */
export class Application {
  readonly machine: Machine;
  readonly encryptionKeys: readonly string[];
  readonly #world: World;
  readonly #strategy: Strategy;
  readonly #package: Package;
  /** Requests that have not been answered. */
  readonly pending = new Map<object, string>();
  isClosed = false;
  #assertions = 0;

  constructor(
    world: World,
    machine: Machine,
    passportOAuthApp: Package,
    mutation: Mutation | undefined,
    encryptionKeys: readonly string[],
  ) {
    this.#world = world;
    this.machine = machine;
    this.encryptionKeys = encryptionKeys;
    this.#package = passportOAuthApp;
    const store = storeClient(passportOAuthApp, world, machine);
    const plain: Parts = { world, machine, store, dispatch: (options, handler) => this.#dispatch(options, handler) };
    const parts = { ...plain, ...mutation?.parts(plain) };
    // An earlier commit, which knows neither option.
    const isCurrent = 'keepAlive' in passportOAuthApp.Strategy.prototype;
    if (!isCurrent) world.revocations.isIncomplete = true;
    this.#strategy = new passportOAuthApp.Strategy({
      authUrl: AUTH,
      baseUrl: API,
      clientID: 'client',
      clientSecret: 'a secret of the application',
      callbackURL: CALLBACK,
      scope: 'project',
      clock: () => machine.wall(),
      dispatcher: { dispatch: parts.dispatch } as unknown as Dispatcher,
      tokenStore: parts.store as TokenStore,
      grantId: (req) => String(req.headers['x-user']),
      ...(world.options.revokes && isCurrent && { revocationPath: REVOCATION_PATH }),
      ...(world.options.organizations.length > 0 &&
        isCurrent && { applicationGrant: (grantId: string) => this.#parametersOf(grantId) }),
      ...(encryptionKeys.length > 0 && { encryptionKeys: [...encryptionKeys] }),
      ...mutation?.options,
    });
  }

  /** An API request of the user, as a page of the application makes it. */
  async request(user: string): Promise<Ending> {
    const begun = this.#world.scheduler.now;
    const ending = await this.#ending(`request of ${user}`, async () => {
      const req = requestOf(user, '/projects');
      await this.#handle(this.#package.apiClient(this.#strategy), req);
      const answer: unknown = await req.apiClient.projects();
      if (Reflect.get(Object(answer), 'user') !== user)
        this.#world.oracle.violate('own token', `a request of ${user} was answered with ${JSON.stringify(answer)}`);
    });
    if (ending === 'authorized') this.#world.oracle.authorized(user, this.machine, begun);
    if (ending === 'not authorized') this.#world.oracle.unauthorized(user, this.machine, begun);
    return ending;
  }

  /** A login, from the link to the callback. */
  login(user: string): Promise<Ending> {
    return this.#ending(`login of ${user}`, async () => {
      const begin = requestOf(user, '/login');
      const target = await this.#authenticate(begin);
      const cookies = [Reflect.get(begin, 'res').getHeader('set-cookie')]
        .flat()
        .map((cookie) => String(cookie).split(';')[0]);
      const state = new URL(String(target)).searchParams.get('state') ?? '';
      const query = new URLSearchParams({ code: this.#world.service.approve(user), state });
      await this.#authenticate(requestOf(user, `/callback?${query}`, { cookie: cookies.join('; ') }));
    });
  }

  /** A logout. */
  logout(user: string): Promise<Ending> {
    return this.#ending(`logout of ${user}`, () =>
      this.#handle(this.#package.logout(this.#strategy), requestOf(user, '/logout')),
    );
  }

  /** Work as an organization. */
  job(organization: string): Promise<Ending> {
    return this.#ending(`job of ${organization}`, async () => {
      const answer: unknown = await this.#strategy.client(organization).projects();
      if (Reflect.get(Object(answer), 'user') !== organization)
        this.#world.oracle.violate('own token', `a job of ${organization} was answered with ${JSON.stringify(answer)}`);
    });
  }

  /** The nightly job. */
  keepAlive(): Promise<Ending> {
    return this.#ending('keep-alive', async () => void (await this.#strategy.keepAlive({ olderThan: 60, rate: 100 })));
  }

  /** The process is asked to end. */
  close(): Promise<Ending> {
    return this.#ending('close', async () => {
      await this.#strategy.close();
      this.isClosed = true;
    });
  }

  async #ending(what: string, work: () => Promise<void>): Promise<Ending> {
    const key = {};
    this.pending.set(key, what);
    this.#world.note(this.machine, `${what} begins`);
    const ending: Ending = await work().then(
      () => 'authorized',
      (error: unknown) => {
        const code = String(Reflect.get(Object(error), 'code') ?? error);
        return code === 'ERR_NOT_AUTHORIZED' ? 'not authorized' : { code };
      },
    );
    this.pending.delete(key);
    this.#world.note(this.machine, `${what} ends`, typeof ending === 'string' ? ending : ending.code);
    return ending;
  }

  #handle(handler: ReturnType<Package['apiClient']>, req: Request): Promise<void> {
    return new Promise((resolve, reject) => handler(req, req.res, (error) => (error ? reject(error) : resolve())));
  }

  /** Does as Passport does: an object of its own for each request, with the four ways in which it may end. */
  #authenticate(req: Request): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const strategy: Strategy = Object.create(this.#strategy);
      strategy.success = resolve;
      strategy.redirect = resolve;
      strategy.error = reject;
      strategy.fail = (info) => reject(new Error(`refused: ${JSON.stringify(info)}`));
      strategy.authenticate(req, { session: false });
    });
  }

  #parametersOf(grantId: string) {
    if (!this.#world.options.organizations.includes(grantId)) return undefined;
    this.#assertions += 1;
    return { grant_type: 'client_credentials', organization: grantId, assertion: `${ASSERTION}${this.#assertions}` };
  }

  #dispatch({ origin, path, body, headers }: DispatchOptions, handler: DispatchHandler): boolean {
    const fields = String(origin) === AUTH ? JSON.parse(String(body)) : undefined;
    if (path === REVOCATION_PATH) this.#revocation(fields.token, handler);
    else if (fields?.organization) this.#request(fields.organization, handler);
    else if (fields) this.#tokenRequest(fields, handler);
    else this.#apiRequest(headers as readonly string[], handler);
    return true;
  }

  #revocation(token: string, handler: DispatchHandler): void {
    const { service, oracle } = this.#world;
    const revoke = () => {
      const family = service.revoke(token);
      if (family && !family.isOfApplication) oracle.revoked(family, this.machine);
    };
    this.#respond('revoke', handler, revoke, { read: () => [200, {}] });
  }

  /** A token request of the application itself. */
  #request(organization: string, handler: DispatchHandler): void {
    const { service, organizations } = this.#world;
    const { machine } = this;
    const issuedAt = this.#world.scheduler.now;
    this.#respond('request', handler, () => service.requestTokens(organization), {
      left: () => organizations.asks(organization, machine, issuedAt),
      read: (answer, damage) => [200, damaged('pair' in answer ? service.body(answer.pair) : {}, damage)],
    });
  }

  #tokenRequest(body: Readonly<Record<string, string>>, handler: DispatchHandler): void {
    const { service, oracle, scheduler } = this.#world;
    const { machine } = this;
    const shown = tokensIn(body.refresh_token ?? '')[0];
    const issuedAt = scheduler.now;
    let lease: Lease | undefined;
    const exchange = (delivery: Delivery): TokenAnswer => {
      const request: TokenRequest = { machine, issuedAt, delivery, lease };
      const answer = shown ? service.refresh(body.refresh_token ?? '') : service.exchange(body.code ?? '');
      if ('pair' in answer) oracle.gave(answer.pair, request);
      else if (answer.refusal === 'reused' && shown) {
        const family = service.family(shown.family);
        if (family) oracle.reused(family, shown, request);
      }
      return answer;
    };
    this.#respond(shown ? 'refresh' : 'code', handler, exchange, {
      left: () => {
        if (shown) lease = oracle.shows(shown, machine, issuedAt);
      },
      read: (answer, damage) => {
        if (!('pair' in answer)) return [400, { error: 'invalid_grant', error_description: answer.refusal }];
        if (damage === 'page' || damage === 'half' || damage === 'refresh_token')
          oracle.lost(answer.pair, 'damaged', scheduler.now - issuedAt);
        else if (damage === 'access_token') oracle.learnedInPart(answer.pair, machine);
        else oracle.learned(answer.pair, machine);
        return [200, damaged(service.body(answer.pair), damage)];
      },
      lost: (answer, how) => 'pair' in answer && oracle.lost(answer.pair, how, scheduler.now - issuedAt),
    });
  }

  #apiRequest(headers: readonly string[], handler: DispatchHandler): void {
    const { service } = this.#world;
    const token = headers[headers.findIndex((name) => name.toLowerCase() === 'authorization') + 1] ?? '';
    const call = (): Family | undefined => service.bearer(token);
    this.#respond('api', handler, call, {
      read: (family) => (family ? [200, { user: family.user }] : [401, { error: { message: 'expired', code: 401 } }]),
    });
  }

  /** Speaks with the package as undici's dispatchers do. */
  #respond<T>(
    op: string,
    handler: DispatchHandler,
    effect: (delivery: Delivery) => T,
    ends: {
      left?: () => void;
      read: (value: T, damage: Damage | undefined) => readonly [number, object | string];
      lost?: (value: T, how: LostAnswer) => void;
    },
  ): void {
    let call: Call | undefined;
    const controller = {
      aborted: false,
      paused: false,
      reason: null,
      abort: (reason: Error) => {
        controller.aborted = true;
        call?.abandon();
        handler.onResponseError?.(controller as never, reason);
      },
      pause: () => {},
      resume: () => {},
    };
    const write = (status: number, text: string, type: string, more: Readonly<Record<string, string>> = {}) => {
      const body = Buffer.from(text);
      handler.onResponseStart?.(controller as never, status, { 'content-type': type, ...more }, '');
      handler.onResponseData?.(controller as never, body);
      handler.onResponseEnd?.(controller as never, {});
    };
    call = this.#world.call<T>(this.machine, 'service', op, effect, {
      left: () => {
        handler.onRequestStart?.(controller as never, null as never);
        ends.left?.();
      },
      answer: (value, damage) => {
        const [status, body] = ends.read(value, damage);
        write(status, typeof body === 'string' ? body : JSON.stringify(body), 'application/json');
      },
      status: (status) => write(status, '<p>Sorry</p>', 'text/html', status === 429 ? { 'retry-after': '2' } : {}),
      fail: (code) => handler.onResponseError?.(controller as never, Object.assign(new Error(code), { code })),
      ...(ends.lost && { lost: ends.lost }),
    });
  }
}

/** Returns a body of the token endpoint as a fault leaves it. */
function damaged(body: object, damage: Damage | undefined): object | string {
  if (damage === 'page') return '<p>Sorry</p>';
  if (damage === 'half') return JSON.stringify(body).slice(0, 40);
  return { ...body, ...(damage && { [damage]: undefined }) };
}

type Request = IncomingMessage & { res: ServerResponse; readonly apiClient: { projects(): Promise<unknown> } };

/** Never connected: the package looks at it to tell whether the browser's connection is encrypted. */
const SOCKET = new Socket();

function requestOf(user: string, url: string, headers: Readonly<Record<string, string>> = {}): Request {
  const req = new IncomingMessage(SOCKET);
  req.method = 'GET';
  req.url = url;
  req.headers = { host: 'app.example.net', 'x-user': user, ...headers };
  return Object.assign(req, { res: new ServerResponse(req), user: { id: user } }) as unknown as Request;
}
