import { expect, test } from 'vitest';
import { apiPath } from '../../src/api/call-request.js';

test.each([
  ['/projects', '/projects'],
  ['projects', '/projects'],
  ['projects/7/', '/projects/7/'],
  ['/projects/7/files/a.b~c-d_e', '/projects/7/files/a.b~c-d_e'],
  ['/projects/a b', '/projects/a%20b'],
  ['/projects/é', '/projects/%C3%A9'],
  ['/projects/%C3%A9', '/projects/%C3%A9'],
  ['/branches/feature%2Fx', '/branches/feature%2Fx'],
  ['/files/50%25', '/files/50%25'],
  ['/files/.hidden', '/files/.hidden'],
  ['/files/...', '/files/...'],
  ['/files/a..b', '/files/a..b'],
  ['/projects/7:move', '/projects/7:move'],
  ['/a/%3Fb%23c', '/a/%3Fb%23c'],
  ['/emoji/😀', '/emoji/%F0%9F%98%80'],
  ['/a|b[c]{d}"<e>^`', '/a%7Cb%5Bc%5D%7Bd%7D%22%3Ce%3E%5E%60'],
])('%s is sent as %s', (path, sent) => {
  expect(apiPath(path)).toBe(sent);
});

test('it takes linear time: with more, paths of a megabyte would take hours', () => {
  for (const path of ['/a', 'a.', '%25', '-']) {
    expect(acceptedOr(`/${path.repeat(500_000)}`)).not.toBe('');
    acceptedOr(`/${path.repeat(500_000)}!`);
  }
});

function acceptedOr(path: string): string | undefined {
  try {
    return apiPath(path);
  } catch (error) {
    expect(error).toBeInstanceOf(TypeError);
    return undefined;
  }
}
