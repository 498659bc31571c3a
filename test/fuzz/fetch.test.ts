import fc from 'fast-check';
import { Dispatcher } from 'undici';
import { expect, test } from 'vitest';
import { HttpClient } from '../../src/http/http-client.js';
import { createFixture, credentialOf, MemorySource, tokenOf } from '../api/fixture.js';
import { threats } from '../support/threats.js';
import { holds } from './fuzz.js';
import { hostileAfter, hostileText } from './hostile.js';

const PLAIN = 'https://api.example.com';
const ENTERPRISE = 'https://acme.api.example.com';

/** Answers each request with a redirect, or with success, and notes where the token went. */
class RedirectingDispatcher extends Dispatcher {
  readonly origins = new Set<string>();
  location: string | undefined;

  override dispatch(options: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler): boolean {
    const fields = options.headers as string[];
    if (fields[fields.indexOf('authorization') + 1] !== `Bearer ${tokenOf('ben')}`) throw new Error('no token');
    if (!options.path.startsWith('/')) throw new Error('a path that is none');
    this.origins.add(String(options.origin));
    const headers = this.location === undefined ? {} : { location: this.location };
    const controller = { aborted: false, paused: false, reason: null, abort() {}, pause() {}, resume() {} };
    queueMicrotask(() => {
      handler.onRequestStart?.(controller, {});
      handler.onResponseStart?.(controller, this.location === undefined ? 200 : 302, headers, '');
      handler.onResponseEnd?.(controller, {});
    });
    return true;
  }
}

test(
  'for any URL, path, Request and redirect of fetch, the token goes to the origin of the API alone',
  threats(25, 67),
  async () => {
    const address = fc.oneof(
      hostileAfter(
        ...[
          '',
          '/',
          '//',
          '\\\\',
          'https://',
          'HTTPS:',
          'http://',
          ENTERPRISE,
          PLAIN,
          `${ENTERPRISE}@`,
          `${ENTERPRISE}.`,
        ],
        ...[`${ENTERPRISE}:`, `${ENTERPRISE}:444`, '/api/v2', '/api/v2/', `${ENTERPRISE}/api/v2/`, '\t', 'data:'],
      ),
      fc.webUrl({ withQueryParameters: true, withFragments: true }),
      hostileText,
    );
    const dispatcher = new RedirectingDispatcher();
    const source = new MemorySource(credentialOf('ben', 'acme'));
    const { client } = createFixture(PLAIN, {
      source,
      enterpriseBaseUrl: 'https://{domain}.api.example.com',
      http: new HttpClient({ dispatcher }),
    });
    const kind = fc.constantFrom('text', 'URL', 'Request');
    let sent = 0;
    let refused = 0;
    await holds('fetch', 0.1, [address, kind, fc.option(address, { nil: undefined })], async (to, as, location) => {
      dispatcher.location = location;
      if (as !== 'text' && !URL.canParse(to)) return;
      try {
        const input = as === 'URL' ? new URL(to) : as === 'Request' ? new Request(new URL(to)) : to;
        await client.fetch(input);
        sent += 1;
      } catch (error) {
        if (!(error instanceof TypeError)) throw error;
        refused += 1;
      }
      if ([...dispatcher.origins].some((origin) => origin !== ENTERPRISE)) throw new Error('elsewhere');
    });
    expect(sent).toBeGreaterThan(0);
    expect(refused).toBeGreaterThan(0);
  },
);
