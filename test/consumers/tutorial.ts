import { expect } from 'vitest';
import type { Reader } from './reader.js';

/** Does sections 1 to 5 of docs/tutorial.md, and looks for what it says that one sees. */
export async function walk(reader: Reader): Promise<void> {
  await reader.follow('1. Create a project');
  await reader.follow('2. Start the service');
  const { stdout } = reader.printed('emulator');
  expect(stdout).toContain(reader.withPorts('The emulator listens on http://127.0.0.1:4000'));

  const [settings] = await reader.follow('3. Save the settings');
  const printed = stdout.match(/^[A-Z_]+=.*$/gm);
  expect(
    reader
      .withPorts(settings?.text ?? '')
      .split('\n')
      .slice(0, 5),
  ).toEqual(printed);

  await reader.follow('4. Log a user in');
  expect((await reader.open('/')).text).toContain('>Log in<');
  expect((await reader.browser.decide(await reader.open('/login'), 'decline')).text).toContain('You declined.');
  expect((await reader.browser.decide(await reader.open('/login'), 'approve')).text).toBe('You are logged in.');

  await reader.follow('5. Call the API');
  const projects = await reader.browser.decide(await reader.open('/projects'), 'approve');
  expect(new URL(projects.url).pathname).toBe('/projects');
  expect(projects.text).toMatch(/<h1>My projects<\/h1>\s*<ul>(?:<li>[^<]+<\/li>)+<\/ul>/);
  expect(projects.text).toContain('<button>Log out</button>');
  const logout = await reader.browser.visit(new URL('/logout', projects.url).href, { method: 'POST' });
  expect((await reader.browser.settle(logout)).text).toContain('>Log in<');
  expect(reader.printed('application').stderr).toBe('');
}
