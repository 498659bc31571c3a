import type { Emulator } from 'passport-oauth-app/emulator';
import type { Example } from '../example.js';
import { type Report, TourError } from './report.js';
import type { Answer, Visitor } from './visitor.js';
import { field, type News, Witness } from './witness.js';

/** The parts that several steps of the tour share, each with its checks. */
export class Guide {
  readonly url: string;
  readonly service: Emulator;
  readonly report: Report;
  readonly witness: Witness;
  /** Lets the lifetime of all access tokens pass. */
  readonly expire: () => void;
  #refreshToken = '';

  /** @param expire Lets the lifetime of all access tokens pass. */
  constructor({ url, service }: Example, report: Report, expire: () => void) {
    if (!service) throw new TourError('there is no emulated service');
    this.url = url;
    this.service = service;
    this.report = report;
    this.witness = new Witness(service, report);
    this.expire = expire;
  }

  /** Opens an address of the application. */
  async open(visitor: Visitor, address: string | URL): Promise<Answer> {
    const answer = await visitor.get(new URL(address, this.url));
    this.report.answer(answer);
    return answer;
  }

  /** Opens the page with the projects, which has to show one of this name. */
  async projects(visitor: Visitor, name: string): Promise<void> {
    const page = await this.open(visitor, '/projects');
    this.report.check(`the page shows ${name}`, page.status === 200 && page.text.includes(name));
  }

  /** Begins a login. @returns The authorization request. */
  async authorize(visitor: Visitor): Promise<URL> {
    this.report.step('The login sends the browser to the service');
    const { location } = await this.open(visitor, '/login');
    if (!location) throw new TourError('the login did not redirect');
    const { authUrl } = this.service;
    const { state = '', ...others } = Object.fromEntries(location.searchParams);
    this.report.check('to {auth_url}/oauth/authorize', location.href.startsWith(`${authUrl}/oauth/authorize?`));
    this.report.check(
      'client_id, redirect_uri, response_type, scope and state, nothing else',
      isSame(others, this.#authorizationRequest()),
    );
    this.report.check('spaces in scope are plus signs', location.search.includes('scope=project+tm'));
    this.report.check('state cannot be guessed', state.length >= 43);
    return location;
  }

  /** Presses a button of the consent page. @returns The callback. */
  async decide(visitor: Visitor, authorize: URL, user: string, decision: 'approve' | 'decline'): Promise<URL> {
    this.report.step(decision === 'approve' ? 'The user approves' : 'The user declines');
    this.report.answer(await visitor.get(authorize));
    const form = new URLSearchParams(authorize.search);
    form.set('user', user);
    form.set('decision', decision);
    const answer = await visitor.post(new URL(authorize.pathname, authorize), form);
    this.report.answer(answer);
    if (!answer.location) throw new TourError('the service did not redirect');
    const { searchParams } = answer.location;
    const unchanged = searchParams.get('state') === authorize.searchParams.get('state');
    this.report.check('back to the application, with its state unchanged', unchanged);
    return answer.location;
  }

  /** Checks that there was one refresh, and that its refresh token was not used before. */
  checkRefresh({ tokens }: News): void {
    const refreshToken = field(tokens[0], 'refresh_token');
    const isNew = refreshToken !== '' && refreshToken !== this.#refreshToken;
    this.#refreshToken = refreshToken;
    this.report.check('one token request', tokens.length === 1);
    this.witness.checkTokenRequest(tokens[0], { grant_type: 'refresh_token', refresh_token: refreshToken });
    this.report.check('its refresh token was not used before', isNew);
  }

  #authorizationRequest() {
    return {
      client_id: this.service.options.clientID,
      redirect_uri: `${this.url}/callback`,
      response_type: 'code',
      scope: 'project tm',
    };
  }
}

function isSame(one: Readonly<Record<string, string>>, other: Readonly<Record<string, string>>): boolean {
  return JSON.stringify(Object.entries(one).sort()) === JSON.stringify(Object.entries(other).sort());
}
