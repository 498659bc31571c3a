import { Client as Crowdin } from '@crowdin/crowdin-api-client';
import { afterEach, describe, expect, test } from 'vitest';
import { Browser } from '../support/browser.js';
import { startWorld, type World } from '../support/world.js';

let world: World;
afterEach(() => world.close());

describe('accessToken() handed to the official SDK', () => {
  test('lets it list the projects of the user who logged in, and again with a newer token after a refresh', async () => {
    world = await startWorld();
    const browser = new Browser();
    await world.logIn(browser);
    const { grantId } = (await browser.visit(`${world.url}/whoami`)).json() as { grantId: string };
    const client = world.strategy.client(grantId);
    const listProjects = async () => {
      const sdk = new Crowdin({ token: await client.accessToken(), baseUrl: client.baseUrl });
      return (await sdk.projectsGroupsApi.listProjects()).data.map(({ data }: { data: { name: string } }) => data.name);
    };

    expect(await listProjects()).toContain('Pocket Garden');
    world.service.expireAccessTokens();
    await client.projects();
    expect(await listProjects()).toContain('Pocket Garden');
  });
});
