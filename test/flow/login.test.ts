import { afterEach, describe, expect, it } from 'vitest';
import { Browser } from '../support/browser.js';
import { startWorld, type World, type WorldOptions } from '../support/world.js';

let world: World;
const open = async (options?: WorldOptions) => {
  world = await startWorld(options);
  return world;
};
afterEach(() => world.close());

describe.each(['express5', 'express4', 'connect'] as const)('a login under %s', (framework) => {
  it('ends with a session that refers to a grant, and with a client that works', async () => {
    await open({ framework });
    const browser = new Browser();
    const page = await world.logIn(browser);
    expect(page.status).toBe(framework === 'connect' ? 200 : 302);
    const projects = await browser.visit(`${world.url}/projects`);
    expect(projects.status).toBe(200);
    expect(projects.json().data[0].data.name).toBe('Pocket Garden');
    const me = (await browser.visit(`${world.url}/whoami`)).json();
    expect(me.user).toEqual({ id: '1' });
    expect(me.session['oauth-app']).toBe(me.grantId);
  });
});
