import { requireAuthorization } from 'passport-oauth-app';
import { describe, expect, test } from 'vitest';
import { Browser, type Page } from '../support/browser.js';
import { clock, loggedIn, open, projects, world } from '../support/one-world.js';
import { threats } from '../support/threats.js';
import { type App, type Framework, type Handler, sendJson, type World, type WorldOptions } from '../support/world.js';

const page = (name: string) => (app: App, framework: Framework) => {
  const guard = requireAuthorization({ login: '/login', scope: name }) as Handler;
  const show: Handler = (req, res) => sendJson(res, req.apiClient.scope);
  if (framework === 'express') app.get(`/${name}`, guard, show);
  else {
    app.use(`/${name}`, guard);
    app.use(`/${name}`, show);
  }
};

const options = (framework: Framework = 'express', more: WorldOptions = {}): WorldOptions => ({
  framework,
  ...more,
  strategy: { scope: 'project', ...more.strategy },
  routes: (app) => {
    page('tm')(app, framework);
    page('glossary')(app, framework);
  },
});

const locationOf = ({ headers }: Page) => headers.get('location') ?? '';
const CLICK = { 'sec-fetch-user': '?1', 'sec-fetch-site': 'same-origin', 'sec-fetch-mode': 'navigate' };
const askedBy = (authorization: string) => new URL(authorization).searchParams.get('scope');

/** A browser that visits pages as a person does, and goes on to the consent page. */
class Visitor {
  readonly world: World;
  readonly browser = new Browser();
  /** Sent with each visit. */
  headers: Record<string, string> = {};

  constructor(world: World) {
    this.world = world;
  }

  visit(path: string, headers: Record<string, string> = {}): Promise<Page> {
    const url = path.startsWith('/') ? this.world.url + path : path;
    return this.browser.visit(url, { headers: { accept: 'text/html', ...this.headers, ...headers } });
  }

  /** Asks for a page, and returns the authorization request that it leads to. */
  async ask(path: string): Promise<string> {
    const redirected = await this.visit(path);
    expect(redirected.status).toBe(302);
    return locationOf(await this.visit(locationOf(redirected)));
  }

  /** Decides on the consent page, and follows all redirects of the application. */
  async decide(authorization: string, choice?: Parameters<World['service']['approve']>[1]): Promise<Page> {
    let answer = await this.visit(await this.world.service.approve(authorization, choice));
    for (let redirects = 0; answer.status === 302 && redirects < 5; redirects++) {
      if (locationOf(answer).startsWith(this.world.service.authUrl)) return answer;
      answer = await this.visit(locationOf(answer));
    }
    return answer;
  }
}

const INSUFFICIENT = { name: 'NotAuthorizedError', code: 'ERR_INSUFFICIENT_SCOPE' };

describe.each(['express', 'connect'] as const)('a page that needs a scope, under %s', (framework) => {
  test('asks for the union, and comes back with it', async () => {
    const callback = (world: World): Handler =>
      world.passport.authenticate('oauth-app', { successReturnToOrRedirect: '/' }) as Handler;
    const visitor = new Visitor(await open(options(framework, { callback })));
    await visitor.decide(locationOf(await visitor.visit('/login')));
    await visitor.decide(await visitor.ask('/tm'));
    expect((await visitor.visit('/tm')).json()).toEqual(['project', 'tm']);
    const asked = await visitor.ask('/glossary?page=2');
    expect(askedBy(asked)).toBe('project tm glossary');
    const back = await visitor.decide(asked);
    expect([back.status, back.json()]).toEqual([200, ['project', 'tm', 'glossary']]);
  });

  test('gets 403 for everything that is no page request, with what is missing', async () => {
    await open(options(framework));
    const visitor = new Visitor(world);
    await visitor.decide(locationOf(await visitor.visit('/login')));
    const refused = await visitor.visit('/tm', { accept: 'application/json' });
    expect([refused.status, refused.json()]).toEqual([403, expect.objectContaining(INSUFFICIENT)]);
    const lacks = { scope: ['tm'], granted: ['project'], message: expect.stringContaining('granted: project') };
    expect(world.errors.at(-1)).toMatchObject({ ...INSUFFICIENT, ...lacks, status: 403, strategy: 'oauth-app' });
  });
});

describe('a visitor who comes back from the consent without the scope', threats(83), () => {
  const choices = { 'after granting less': { scope: ['project'] }, 'after declining': { decline: true } };
  test.for(Object.entries(choices))('%s gets 403, no loop, and keeps the grant', async ([_name, choice]) => {
    await open(options('express', { authenticate: { failureRedirect: '/tm' } }));
    const visitor = new Visitor(world);
    await visitor.decide(locationOf(await visitor.visit('/login')));
    const back = await visitor.decide(await visitor.ask('/tm'), choice);
    expect([back.status, back.json()]).toEqual([403, expect.objectContaining(INSUFFICIENT)]);
    for (let reload = 0; reload < 3; reload++) expect((await visitor.visit('/tm')).status).toBe(403);
    expect((await visitor.visit('/projects')).status).toBe(200);
    const again = await visitor.visit('/tm', CLICK);
    expect(again.status).toBe(302);
    const granted = await visitor.decide(locationOf(await visitor.visit(locationOf(again))));
    expect([granted.status, granted.json()]).toEqual([200, ['project', 'tm']]);
  });

  test.for([
    ['of a service at the origin of the application', CLICK],
    ['of a consent page without referrer, in Firefox,', { ...CLICK, 'sec-fetch-site': 'none' }],
  ] as const)('%s gets 403 too, and is asked again after a click', async ([_page, headers]) => {
    const visitor = new Visitor(await open(options()));
    await visitor.decide(locationOf(await visitor.visit('/login')));
    // So browsers mark the redirects that follow a click there.
    visitor.headers = headers;
    const back = await visitor.decide(await visitor.ask('/tm'), { scope: ['project'] });
    expect([back.status, back.json()]).toEqual([403, expect.objectContaining(INSUFFICIENT)]);
    expect((await visitor.visit('/tm')).status).toBe(302);
  });

  test('at the first login already gets 403 as well', async () => {
    const visitor = new Visitor(await open(options()));
    const asked = await visitor.ask('/tm');
    expect(askedBy(asked)).toBe('project tm');
    expect((await visitor.decide(asked, { scope: ['project'] })).status).toBe(403);
  });

  test('is asked again after a minute', async () => {
    await loggedIn(options());
    const visitor = new Visitor(world);
    await visitor.decide(await visitor.ask('/tm'), { scope: ['project'] });
    clock.advance(61);
    expect((await visitor.visit('/tm')).status).toBe(302);
  });
});

describe('scopes are added', threats(83), () => {
  test('by no link to the login route', async () => {
    const visitor = new Visitor(await open(options()));
    await visitor.decide(locationOf(await visitor.visit('/login')));
    for (const query of ['scope=tm', 'returnTo=/tm', 'returnTo=/tm&scope=tm&step-up=tm'])
      expect(askedBy(locationOf(await visitor.visit(`/login?${query}`)))).toBe('project');
  });

  test('by no cookie of another visitor', async () => {
    await open(options());
    const [ada, ben] = [new Visitor(world), new Visitor(world)];
    for (const visitor of [ada, ben]) await visitor.decide(locationOf(await visitor.visit('/login')));
    const redirected = await ada.visit('/tm');
    const [cookie = ''] = redirected.headers.getSetCookie().filter((line) => line.includes('.step-up.'));
    const [name = '', value = ''] = cookie.split(';', 1)[0]?.split('=', 2) ?? [];
    ben.browser.cookies(world.url).set(name, value);
    const planted = await ben.visit(locationOf(redirected));
    expect(askedBy(locationOf(planted))).toBe('project');
  });

  test('for one login: the next one asks for the usual ones', async () => {
    const visitor = new Visitor(await open(options()));
    await visitor.decide(locationOf(await visitor.visit('/login')));
    await visitor.ask('/tm');
    expect(askedBy(locationOf(await visitor.visit('/login?returnTo=/tm')))).toBe('project');
  });
});

test('two tabs that step up for different scopes both come back, and end without a loop', threats(83), async () => {
  const visitor = new Visitor(await open(options()));
  await visitor.decide(locationOf(await visitor.visit('/login')));
  const [tm, glossary] = [await visitor.visit('/tm'), await visitor.visit('/glossary')];
  const asked = [];
  for (const tab of [tm, glossary]) asked.push(locationOf(await visitor.visit(locationOf(tab))));
  expect(asked.map(askedBy)).toEqual(['project tm', 'project glossary']);
  for (const authorization of asked) expect((await visitor.decide(authorization)).status).toBe(200);
  expect((await visitor.visit('/projects')).status).toBe(200);
  const again = await visitor.decide(await visitor.ask('/tm'));
  expect([again.status, again.json()]).toEqual([200, ['project', 'glossary', 'tm']]);
  expect((await visitor.visit('/glossary')).status).toBe(200);
});

test('a login route that leads elsewhere ends in 403, not in a loop', async () => {
  const routes: WorldOptions['routes'] = (app) => {
    const guard = requireAuthorization({ login: '/back', scope: 'tm' }) as Handler;
    app.get('/back', (_req, res) => void res.writeHead(302, { location: '/tm' }).end());
    app.get('/tm', guard, (_req, res) => sendJson(res, {}));
  };
  const visitor = new Visitor(await open({ strategy: { scope: 'project' }, routes }));
  await visitor.decide(locationOf(await visitor.visit('/login')));
  let answer = await visitor.visit('/tm');
  for (let redirects = 0; answer.status === 302 && redirects < 10; redirects++)
    answer = await visitor.visit(locationOf(answer));
  expect(answer.status).toBe(403);
});

test('a refusal of the API for lack of scopes says so', async () => {
  await loggedIn();
  const header = 'Bearer realm="api", error="insufficient_scope", scope="tm glossary"';
  world.service.fail('api', { status: 403, headers: { 'www-authenticate': header }, body: {} });
  world.service.fail('api', {
    status: 403,
    headers: { 'www-authenticate': 'Bearer error=insufficient_scope' },
    body: {},
  });
  world.service.fail('api', { status: 403, body: {} });
  for (let call = 0; call < 3; call++) await projects();
  expect(world.errors.map(({ code, status, ...error }) => [code, status, Reflect.get(error, 'scope')])).toEqual([
    ['ERR_INSUFFICIENT_SCOPE', 403, ['tm', 'glossary']],
    ['ERR_INSUFFICIENT_SCOPE', 403, undefined],
    ['ERR_API', 403, undefined],
  ]);
});

test.for([{ scope: 7 }, { scope: ['a b'] }, { scope: 'a"b' }])('%j is refused at creation', (wrong) => {
  expect(() => requireAuthorization(wrong as never)).toThrow(/^scope: expected scopes/);
});
