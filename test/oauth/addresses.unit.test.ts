import { expect, test } from 'vitest';
import { LOOPBACK_HOST } from '../../src/checks.js';
import { ConfigurationError } from '../../src/errors.js';
import {
  apiPathBelow,
  authorizationAddress,
  endpointAddress,
  endpointUrl,
  enterpriseAddress,
  furtherOrigins,
  serviceAddress,
} from '../../src/oauth/addresses.js';

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

const URL_WANTED = 'expected an absolute URL, got';
const HTTPS_WANTED = 'expected an https URL (http is for loopback hosts only), got';
const BARE_URL_WANTED = 'expected a URL without credentials, query or fragment';
const HOST_WANTED = 'expected a host of letters, digits, hyphens and dots, or an IP address';
const LABEL_WANTED =
  'expected {domain} to be one whole label of the host and not its last one, as in https://{domain}.api.example.com';
const ENDPOINT_WANTED = 'expected a path such as /oauth/token (a trailing slash and a query are kept), or a whole URL';
const PATH_WANTED = "expected a path such as /api/v2, or ''";

const taken: [check: (option: string, value: unknown) => unknown, value: unknown, address: unknown][] = [
  [serviceAddress, 'https://a.example', 'https://a.example'],
  [serviceAddress, 'HTTPS://A.example:443//', 'https://a.example'],
  [serviceAddress, 'https://a.example/base//', 'https://a.example/base'],
  [serviceAddress, 'https://[2001:db8::1]:8443', 'https://[2001:db8::1]:8443'],
  [serviceAddress, 'https://a_b-c.example', 'https://a_b-c.example'],
  [serviceAddress, 'http://api.localhost:80/', 'http://api.localhost'],
  [enterpriseAddress, 'https://eu.{domain}.example/base/', 'https://eu.{domain}.example/base'],
  [furtherOrigins, [], []],
  [
    furtherOrigins,
    ['https://a.example/', 'https://{domain}.b.example'],
    ['https://a.example', 'https://{domain}.b.example'],
  ],
  [endpointAddress, '/oauth/token', '/oauth/token'],
  [endpointAddress, '/oauth/token/?tenant=1&a=/b', '/oauth/token/?tenant=1&a=/b'],
  [endpointAddress, '/', '/'],
  [endpointAddress, '/a/https:/b', '/a/https:/b'],
  [endpointAddress, '/?a', '/?a'],
  [endpointAddress, 'https://a.example/token/?b=1', 'https://a.example/token/?b=1'],
  [endpointAddress, 'Https://a.example/token?', 'https://a.example/token'],
  [endpointAddress, 'http://localhost/?a?', 'http://localhost/?a'],
  [authorizationAddress, '/authorize?tenant=1', '/authorize?tenant=1'],
  [apiPathBelow, '', ''],
  [apiPathBelow, '/api/v2', '/api/v2'],
  [apiPathBelow, '/a%20b/..c/d...', '/a%20b/..c/d...'],
  [apiPathBelow, "/~!$&'()*+,;=:@-", "/~!$&'()*+,;=:@-"],
];

test.for(taken)('%o takes %j as %j', ([check, value, address]) => {
  expect(check('anOption', value)).toEqual(address);
});

const refused: [check: (option: string, value: unknown) => unknown, value: unknown, expected: string][] = [
  [serviceAddress, undefined, `${URL_WANTED} undefined`],
  [serviceAddress, new URL('https://a.example'), `${URL_WANTED} object`],
  [serviceAddress, 'a.example', `${URL_WANTED} a string that is not a URL`],
  [serviceAddress, 'ftp://a.example', `${HTTPS_WANTED} ftp://a.example`],
  [serviceAddress, 'ftp://localhost', `${HTTPS_WANTED} ftp://localhost`],
  [serviceAddress, 'http://a.example:8080/x', `${HTTPS_WANTED} http://a.example:8080`],
  [serviceAddress, 'https://user@a.example', BARE_URL_WANTED],
  [serviceAddress, 'https://:word@a.example', BARE_URL_WANTED],
  [serviceAddress, 'https://a.example#', BARE_URL_WANTED],
  [serviceAddress, 'https://a.example?', BARE_URL_WANTED],
  [serviceAddress, 'https://a.example/?b', BARE_URL_WANTED],
  [serviceAddress, 'https://a!b.example', HOST_WANTED],
  [serviceAddress, 'https://a.example!', HOST_WANTED],
  [serviceAddress, 'mailto:a@b.example', HOST_WANTED],
  [enterpriseAddress, 'https://a-{domain}.example', LABEL_WANTED],
  [enterpriseAddress, 'https://a.example/{domain}', LABEL_WANTED],
  [enterpriseAddress, 'https://organization-domain.{domain}.example', LABEL_WANTED],
  [enterpriseAddress, 'http://{domain}.example', `${HTTPS_WANTED} http://organization-domain.example`],
  [endpointAddress, undefined, ENDPOINT_WANTED],
  [endpointAddress, ['/token'], ENDPOINT_WANTED],
  [endpointAddress, ['https://a.example'], ENDPOINT_WANTED],
  [endpointAddress, '', ENDPOINT_WANTED],
  [endpointAddress, '?a=1', ENDPOINT_WANTED],
  [endpointAddress, 'oauth/token', ENDPOINT_WANTED],
  [endpointAddress, '/oauth//token', ENDPOINT_WANTED],
  [endpointAddress, '/oauth/token#part', ENDPOINT_WANTED],
  [endpointAddress, '/oauth/token?a b', ENDPOINT_WANTED],
  [endpointAddress, '/oauth/../token', ENDPOINT_WANTED],
  [endpointAddress, 'http://a.example/token', `${HTTPS_WANTED} http://a.example`],
  [endpointAddress, 'https://a.example/token#', BARE_URL_WANTED],
  [apiPathBelow, undefined, PATH_WANTED],
  [apiPathBelow, ['/api'], PATH_WANTED],
  [apiPathBelow, '/', PATH_WANTED],
  [apiPathBelow, 'api', PATH_WANTED],
  [apiPathBelow, '/api/', PATH_WANTED],
  [apiPathBelow, '/api?a=1', PATH_WANTED],
  [apiPathBelow, '/api/.', PATH_WANTED],
  [apiPathBelow, '/./api', PATH_WANTED],
  [apiPathBelow, '/a%2Fb', PATH_WANTED],
  [apiPathBelow, '/a%2eb', PATH_WANTED],
  [apiPathBelow, '/a%5Cb', PATH_WANTED],
  [apiPathBelow, '/a%2', PATH_WANTED],
  [apiPathBelow, '/a\nb', PATH_WANTED],
];

test.for(refused)('%o refuses %j: %s', ([check, value, expected]) => {
  const error = new ConfigurationError(`anOption: ${expected}`, { option: 'anOption' });
  expect(() => check('anOption', value)).toThrow(error);
});

test('the address of the authorization endpoint has no parameter of the package in its query', () => {
  const address = (value: string) => () => authorizationAddress('authorizationPath', value);
  expect(address('/authorize?state=1')).toThrow(/^authorizationPath/);
  expect(address('https://a.example/authorize?client_id=1')).toThrow(/^authorizationPath/);
  expect(address('/authorize?state=1')).toThrow(ConfigurationError);
});

test('an endpoint is below the authorization server, or where its URL says', () => {
  expect(endpointUrl('https://a.example/base', '/token/?b').href).toBe('https://a.example/base/token/?b');
  expect(endpointUrl('https://a.example/base', 'https://b.example/token').href).toBe('https://b.example/token');
});
