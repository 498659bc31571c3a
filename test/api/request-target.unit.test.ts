import { describe, expect, test } from 'vitest';
import { apiPath } from '../../src/api/request-target.js';
import { threats } from '../support/threats.js';

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

describe('it is a TypeError, which does not quote the path', threats(25), () => {
  test.each([
    ...['//evil.example', '/a//b', '///', '', 'https://evil.example', 'HTTPS:evil', 'javascript:alert(1)'],
    ...['\\\\evil.example', '/a\\b', '/a/%5cb', '\thttps://evil.example', ' https://evil.example', '../secret', '/..'],
    ...['/a/..', '/a/./b', '.', '%2e%2e/secret', '/a/.%2E/b', '/a/%2e%2e', '/a/%252e%252e/b', '/a/%25252e%25252e/b'],
    ...['..%2fsecret', '/a/..%2fb', '/a%2f..%2fb', '/a%252f..%252fb', '/a/..;/b', '/a/..;x=1/b', '/a/%2e%2e;/b'],
    ...['/a\r\nHost: evil', '/a%0d%0aHost:%20evil', '/a\0', '/a%00', '/a\u007f', '/a%250a', '/a?b=c', '/a#b', '/a/%'],
    ...['/a/%zz', '/a/%c0%ae%c0%ae/b', '/a/\ud800'],
    `/a/%${'25'.repeat(12)}2e`,
  ])('%j', (path) => {
    expect(() => apiPath(path)).toThrow(TypeError);
    expect(() => apiPath(path)).not.toThrow(/evil|secret/);
  });

  test.each([undefined, null, 7, {}, ['/a'], new URL('https://evil.example')])('%o', (path) => {
    expect(() => apiPath(path)).toThrow(TypeError);
  });
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
