import { expect, test } from 'vitest';
import { LOOPBACK_HOST } from '../../src/checks.js';
import { enterpriseAddress, serviceAddress } from '../../src/oauth/addresses.js';
import { threats } from '../support/threats.js';

test.each(['localhost', 'api.localhost', 'a.b.localhost', '127.0.0.1', '127.255.255.254', '[::1]'])(
  '%s is this machine',
  (host) => {
    expect(LOOPBACK_HOST.test(host)).toBe(true);
  },
);

test.each([
  ...['localhost.example.com', 'notlocalhost', 'localhost.', '127.0.0.1.example.com', '128.0.0.1', '0.0.0.0'],
  ...['10.0.0.1', '169.254.169.254', '[::]', '[::ffff:7f00:1]', ''],
])('%j is not', (host) => {
  expect(LOOPBACK_HOST.test(host)).toBe(false);
});

test.each(['http://127.1', 'http://2130706433', 'http://0x7f.1', 'http://LOCALHOST', 'http://[0:0:0:0:0:0:0:1]'])(
  '%s is a loopback address in the form that it has as a URL',
  (address) => {
    expect(LOOPBACK_HOST.test(new URL(serviceAddress('authUrl', address)).hostname)).toBe(true);
  },
);

test('an address names the option where it is wrong, and shows no credentials', () => {
  expect(() => serviceAddress('baseUrl', 'http://example.com')).toThrow(
    expect.objectContaining({ option: 'baseUrl', message: expect.stringMatching(/^baseUrl: .*https/) }),
  );
  expect(() => serviceAddress('baseUrl', 'https://user:SECRET@example.com')).toThrow(/^baseUrl: (?!.*SECRET)/);
});

test('a template keeps its label where it stands, even where the host says the same', () => {
  expect(enterpriseAddress('enterpriseBaseUrl', 'https://{domain}.api.example.com')).toBe(
    'https://{domain}.api.example.com',
  );
});

test.each(['https://{domain}', 'https://api.{domain}', 'https://{domain}:8080', 'https://{domain}/api.example.com'])(
  'a template in which the token would choose the top-level domain is refused: %s',
  threats(27),
  (template) => {
    expect(() => enterpriseAddress('enterpriseBaseUrl', template)).toThrow(/^enterpriseBaseUrl: /);
  },
);
