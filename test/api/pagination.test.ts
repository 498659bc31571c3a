import { getEventListeners } from 'node:events';
import { describe, expect, test } from 'vitest';
import * as faulty from '../support/faulty-server.js';
import { threats } from '../support/threats.js';
import { client, credentialOf, http, server, source, startApiForEachTest } from './fixture.js';

startApiForEachTest();

/** A list of `total` items, of which at most `most` are given at once. */
function list(total: number, most = Infinity, shown: (value: number) => unknown = Number): faulty.Behaviour {
  return (socket, received) => {
    const query = new URL(received.target, 'http://x').searchParams;
    const limit = Math.min(Number(query.get('limit')), most);
    const offset = Number(query.get('offset'));
    const length = Math.max(0, Math.min(limit, total - offset));
    const data = Array.from({ length }, (_none, index) => ({ data: { id: offset + index } }));
    faulty.json({ data, pagination: { offset: shown(offset), limit: shown(limit) } })(socket, received);
  };
}

async function read<T>(items: AsyncIterable<T>, found: T[] = []): Promise<T[]> {
  for await (const item of items) found.push(item);
  return found;
}

const idsOf = async (items: AsyncIterable<{ id: number }>) => (await read(items)).map(({ id }) => id);

const offsetOf = ({ target }: { readonly target: string }) =>
  Number(new URL(target, 'http://x').searchParams.get('offset'));

/** The error of a page that cannot be used, which names this. */
const unusable = (name: string) => ({ code: 'ERR_API_RESPONSE', message: expect.stringContaining(name) });

const firstIds = (count: number) => Array.from({ length: count }, (_none, id) => id);

describe('paginate', () => {
  test.each([
    [0, 10, 1],
    [9, 10, 1],
    [10, 10, 2],
    [25, 10, 3],
  ])('gives all of %i items, %i at once, with %i requests', async (total, limit, requests) => {
    server.always(list(total));
    expect(await idsOf(client.paginate('/projects', { limit }))).toEqual(firstIds(total));
    expect(server.requests).toHaveLength(requests);
  });

  test.each([
    ['an object', { limit: 2, offset: 3 }],
    ['parameters', new URLSearchParams({ limit: '2', offset: '3' })],
  ])('heeds limit and offset of a query that is %s', async (_what, query) => {
    server.always(list(7));
    expect(await idsOf(client.paginate('/projects', { query }))).toEqual([3, 4, 5, 6]);
    expect(server.requests[0]?.target).toBe('/api/v2/projects?limit=2&offset=3');
    await expect(read(client.paginate('/projects', { query: { limit: 'x' } }))).rejects.toThrow(TypeError);
  });

  test('begins at the given offset, and keeps the other parameters', async () => {
    server.always(list(10));
    expect(await idsOf(client.paginate('/projects', { offset: 8, query: { groupId: 1 } }))).toEqual([8, 9]);
    expect(server.requests[0]?.target).toBe('/api/v2/projects?groupId=1&limit=100&offset=8');
    await idsOf(client.paginate('/projects', { query: new URLSearchParams({ groupId: '1' }) }));
    expect(server.requests[1]?.target).toBe('/api/v2/projects?groupId=1&limit=100&offset=0');
  });

  test.each<[string, (value: number) => unknown]>([
    ['number', Number],
    ['text', String],
  ])(
    'does not stop early at a service that gives less at once than asked for, and says so by a %s',
    async (_type, shown) => {
      server.always(list(60, 25, shown));
      expect(await idsOf(client.paginate('/projects', { limit: 500 }))).toEqual(firstIds(60));
    },
  );

  test('takes other shapes with `items`', async () => {
    server.next(faulty.json({ results: [1, 2] }));
    server.next(faulty.json({ results: [3] }));
    const items = (page: unknown) => (page as { results: number[] }).results;
    expect(await read(client.paginate('/x', { limit: 2, items }))).toEqual([1, 2, 3]);
  });

  test('asks for the next page only when it is needed, unless it may read ahead', async () => {
    server.always(list(100));
    const slow = client.paginate('/projects', { limit: 10 });
    for (let count = 0; count < 10; count++) await slow.next();
    expect(server.requests).toHaveLength(1);
    await slow.return?.();
    const ahead = client.paginate<{ id: number }>('/projects', { limit: 10, readAhead: true });
    await ahead.next();
    await server.received(3);
    expect(server.requests).toHaveLength(3);
    expect(await idsOf({ [Symbol.asyncIterator]: () => ahead })).toEqual(firstIds(100).slice(1));
    expect(server.requests).toHaveLength(1 + 11);
  });

  test('gives up reading ahead when the reader leaves', async () => {
    server.next(list(100));
    server.next(faulty.hang());
    for await (const _item of client.paginate('/projects', { limit: 10, readAhead: true })) {
      await server.received(2);
      break;
    }
    await expect.poll(() => http.pending).toBe(0);
  });

  test('rejects for a page that failed once it gets there', async () => {
    server.next(list(100));
    server.next(faulty.json({}, 500));
    const found: { id: number }[] = [];
    const reading = read(client.paginate<{ id: number }>('/projects', { limit: 10, readAhead: true }), found);
    await expect(reading).rejects.toMatchObject({ name: 'ApiError', status: 500 });
    expect(found.map(({ id }) => id)).toEqual(firstIds(10));
  });

  test('rejects with the reason of its signal, and holds on to it no longer than it runs', async () => {
    server.always(list(100));
    const controller = new AbortController();
    const { signal } = controller;
    client.paginate('/projects', { signal });
    expect(getEventListeners(signal, 'abort')).toEqual([]);
    const items = client.paginate<{ id: number }>('/projects', { limit: 10, signal });
    await items.next();
    expect(getEventListeners(signal, 'abort')).toHaveLength(1);
    const reason = new Error('enough');
    controller.abort(reason);
    await expect(idsOf({ [Symbol.asyncIterator]: () => items })).rejects.toBe(reason);
    expect(getEventListeners(signal, 'abort')).toEqual([]);
  });

  test.each([
    { limit: 0 },
    { limit: 1.5 },
    { limit: '10' },
    { maxPages: 0 },
    { offset: -1 },
    { items: 1 },
    { json: {} },
    { page: 2 },
    { timeout: -1 },
    { signal: 1 },
  ])('with options %j is a TypeError, and sends nothing', async (options) => {
    // @ts-expect-error what JavaScript may give
    await expect(read(client.paginate('/projects', options))).rejects.toThrow(TypeError);
    expect(server.requests).toEqual([]);
  });
});

test('a job that reads 10,000 items over three expiries goes through, and has one page in hand at a time', async () => {
  let valid = 'first';
  let inHand = 0;
  let most = 0;
  server.always((socket, received) => {
    const isValid = received.headers.authorization === `Bearer ${credentialOf(valid).accessToken}`;
    (isValid ? list(10_000) : faulty.json({}, 401))(socket, received);
  });
  let count = 0;
  const items = (page: unknown) => {
    most = Math.max(most, ++inHand);
    return (page as { data: readonly { data: { id: number } }[] }).data;
  };
  for await (const { data } of client.paginate('/projects', { limit: 500, items })) {
    expect(data.id).toBe(count++);
    if (count % 500 === 0) inHand--;
    if (count % 2_500 === 0 && count < 10_000) valid = `refresh-${source.refreshes + 1}`;
  }
  expect({ count, most, refreshes: source.refreshes }).toEqual({ count: 10_000, most: 1, refreshes: 3 });
});

describe('a list that ignores `offset`', threats(66), () => {
  const full = Array.from({ length: 10 }, (_none, id) => ({ data: { id, seen: 0 } }));

  test('ends where its first page was the whole list', async () => {
    server.always(faulty.json({ data: full }));
    expect(await idsOf(client.paginate('/projects', { limit: 3 }))).toEqual(firstIds(10));
    expect(server.requests).toHaveLength(2);
  });

  test('is an error where it may have more items, even if they change from page to page', async () => {
    let seen = 0;
    server.always((socket, received) => {
      const data = full.map(({ data: { id } }) => ({ data: { id, seen: seen++ } }));
      faulty.json({ data })(socket, received);
    });
    const found: { id: number }[] = [];
    const reading = read(client.paginate<{ id: number }>('/projects', { limit: 10 }), found);
    await expect(reading).rejects.toMatchObject(unusable('`offset`'));
    expect(found.map(({ id }) => id)).toEqual(firstIds(10));
  });

  test('is distinguished from a list that repeats values across pages', async () => {
    server.always((socket, received) => {
      const data = firstIds(5).slice(offsetOf(received), offsetOf(received) + 2);
      faulty.json({ data: data.map((id) => ({ data: { id, name: 'same' } })) })(socket, received);
    });
    expect(await idsOf(client.paginate('/projects', { limit: 2 }))).toEqual(firstIds(5));
  });
});

/** Answers with the rows of an honest list, and with `more` in each page. */
function rows(all: readonly unknown[], more: (query: URLSearchParams) => object = () => ({})): faulty.Behaviour {
  return (socket, received) => {
    const query = new URL(received.target, 'http://x').searchParams;
    const offset = Number(query.get('offset'));
    faulty.json({ data: all.slice(offset, offset + Number(query.get('limit'))), ...more(query) })(socket, received);
  };
}

describe('an honest list is read to its end', threats(81), () => {
  const entries = (item: (index: number) => unknown) => Array.from({ length: 7 }, (_none, n) => ({ data: item(n) }));
  const pagination = (query: URLSearchParams) => ({ pagination: { offset: Number(query.get('offset')), limit: 2 } });

  test.each<[string, readonly { data: unknown }[], requests: number]>([
    ['equal rows without `id`', entries(() => ({ language: 'de' })), 5],
    ['rows that share an `id`', entries((value) => ({ id: 1, value })), 4],
    ['pages whose rows have the same ids', entries((n) => ({ id: n % 2, value: n })), 5],
    ['rows that are no objects', entries((n) => n % 2), 5],
  ])('of %s', async (_what, all, requests) => {
    const items = all.map(({ data }) => data);
    server.always(rows(all));
    expect(await read(client.paginate('/rows', { limit: 2 }))).toEqual(items);
    expect(server.requests).toHaveLength(requests);
    server.always(rows(all, pagination));
    expect(await read(client.paginate('/rows', { limit: 2 }))).toEqual(items);
    // It says which offset it is at: nothing needs a proof.
    expect(server.requests).toHaveLength(requests + 4);
  });

  test('whose `items` picks one field', async () => {
    server.always(rows(entries((n) => ({ status: 'done', n }))));
    const items = (page: unknown) =>
      (page as { data: { data: { status: string } }[] }).data.map(({ data }) => data.status);
    expect(await read(client.paginate('/rows', { limit: 2, items }))).toEqual(Array(7).fill('done'));
    expect(server.requests).toHaveLength(4);
  });

  test('whose service refuses an offset beyond the end', async () => {
    const honest = rows(entries(() => 'equal'));
    const refused = faulty.json({}, 400);
    server.always((socket, received) =>
      (received.target.includes('offset=2147483647') ? refused : honest)(socket, received),
    );
    expect(await read(client.paginate('/rows', { limit: 2 }))).toEqual(Array(7).fill('equal'));
  });

  test('whose service gives more at once than it is asked for', async () => {
    const all = entries((id) => ({ id }));
    server.always((socket, received) => {
      faulty.json({ data: all.slice(offsetOf(received), offsetOf(received) + 3) })(socket, received);
    });
    expect(await idsOf(client.paginate('/rows', { limit: 2 }))).toEqual(firstIds(7));
  });

  test('of more pages than a list may have without a proof', async () => {
    server.always(list(250));
    expect(await idsOf(client.paginate('/rows', { limit: 2 }))).toEqual(firstIds(250));
    expect(server.requests).toHaveLength(127);
  });
});

describe('a list that ignores `offset` and changes between requests', threats(81), () => {
  let value = 0;
  const fresh = (count: number, more: (at: number) => object = () => ({})): faulty.Behaviour => {
    return (socket, received) => {
      const data = Array.from({ length: count }, () => ({ data: { value: value++ } }));
      faulty.json({ data, ...more(offsetOf(received)) })(socket, received);
    };
  };

  test('ends where a page has more rows than `limit`', async () => {
    server.always(fresh(5));
    expect(await read(client.paginate('/rows', { limit: 2 }))).toHaveLength(5);
    expect(server.requests).toHaveLength(3);
  });

  test.each<[string, (at: number) => object, requests: number]>([
    ['its own offset stays behind', () => ({ pagination: { offset: 0 } }), 3],
    ['nothing tells, by a proof after some pages', () => ({}), 101],
    ['it repeats the offset that it was given, by the same proof', (offset) => ({ pagination: { offset } }), 101],
  ])('is an error where %s', async (_what, more, requests) => {
    server.always(fresh(2, more));
    await expect(read(client.paginate('/rows', { limit: 2 }))).rejects.toMatchObject(unusable('`offset`'));
    expect(server.requests).toHaveLength(requests);
  });

  test.each([{}, { next: (_page: unknown) => ({ cursor: value }) }])(
    'is an error after `maxPages`: %o',
    async (options) => {
      server.always(fresh(2));
      const pages = client.paginate('/rows', { limit: 2, maxPages: 3, ...options });
      await expect(read(pages)).rejects.toMatchObject(unusable('`maxPages`'));
      expect(server.requests).toHaveLength(3);
    },
  );
});

test.each<[string, unknown]>([
  ['bare entries', { data: [{ id: 1 }] }],
  ['a mixture', { data: [{ data: { id: 1 } }, { id: 2 }] }],
  ['null entries', { data: [null] }],
  ...[{ data: {} }, [], 'text', {}].map((page) => [JSON.stringify(page), page] as [string, unknown]),
])('a page of %s is an error that names `items`, and yields nothing undefined', async (_what, page) => {
  server.always(faulty.json(page));
  await expect(idsOf(client.paginate('/projects'))).rejects.toMatchObject(unusable('`items`'));
});

test('`items` that returns a Set is a TypeError that says what to return', async () => {
  server.always(faulty.json({ data: [] }));
  const items = () => new Set([1]);
  // @ts-expect-error not an array
  const reading = client.paginate('/projects', { items })[Symbol.asyncIterator]().next();
  await expect(reading).rejects.toThrow(/\[\.\.\.list\]/);
});

describe('`next`', () => {
  interface CursorPage {
    readonly results: readonly number[];
    readonly cursor?: string | null;
  }
  const items = (page: unknown) => (page as CursorPage).results;
  const targets = () => server.requests.map(({ target }) => target);

  test('follows a cursor as a parameter, and keeps the others', async () => {
    for (const cursor of ['a b', 'c', undefined]) server.next(faulty.json({ results: [1], cursor }));
    const next = (page: unknown) => {
      const { cursor } = page as CursorPage;
      return cursor === undefined ? undefined : { cursor };
    };
    const list = client.paginate('/search', { query: { q: 'x' }, limit: 5, items, next });
    expect(await read(list)).toEqual([1, 1, 1]);
    expect(targets()).toEqual([
      '/api/v2/search?q=x&limit=5',
      '/api/v2/search?q=x&limit=5&cursor=a%20b',
      '/api/v2/search?q=x&limit=5&cursor=c',
    ]);
  });

  test('follows a Link header, a path, a query and a URL of the API', async () => {
    const link = { link: `<${server.origin}/api/v2/search?page=2>; rel="next"` };
    server.next(faulty.json({ results: [1] }, 200, link));
    for (const result of [2, 3, 4, 5]) server.next(faulty.json({ results: [result] }));
    const places = ['/search?page=3', '?page=4', new URL(`${server.origin}/other?page=5`)];
    const next = (_page: unknown, { headers, status }: { headers: object; status: number }) => {
      expect(status).toBe(200);
      const [, url] = /<([^>]+)>/.exec(String(Reflect.get(headers, 'link'))) ?? [];
      return url ?? places.shift();
    };
    expect(await read(client.paginate('/search', { items, next }))).toEqual([1, 2, 3, 4, 5]);
    expect(targets()).toEqual([
      '/api/v2/search',
      '/api/v2/search?page=2',
      '/api/v2/search?page=3',
      '/api/v2/search?page=4',
      '/other?page=5',
    ]);
  });

  test.each([null, '', undefined, false])('ends the list with %j', async (end) => {
    server.always(faulty.json({ results: [1] }));
    // @ts-expect-error null is what JSON gives
    expect(await read(client.paginate('/search', { items, next: () => end }))).toEqual([1]);
  });

  test.each(['items', 'next'])('says of an async %s that it must not be', async (option) => {
    server.always(faulty.json({ results: [1] }));
    const options = { items, next: () => undefined, [option]: () => Promise.reject(new Error('down')) };
    await expect(read(client.paginate('/search', options))).rejects.toThrow(`${option}: expected a function that`);
  });

  test('never leads in a circle, nor to another origin', async () => {
    server.always(faulty.json({ results: [1] }));
    const circle = ['a', 'b', 'a'];
    const next = () => ({ cursor: circle.shift() });
    await expect(read(client.paginate('/search', { items, next }))).rejects.toMatchObject(unusable('back to a page'));
    const count = server.requests.length;
    const away = () => 'https://evil.example/api/v2/search';
    await expect(read(client.paginate('/search', { items, next: away }))).rejects.toThrow(/origin of the API/);
    expect(server.requests).toHaveLength(count + 1);
  });

  test('reads ahead', async () => {
    server.next(faulty.json({ results: [1], cursor: 'a' }));
    server.next(faulty.json({ results: [2] }));
    const next = (page: unknown) => ((page as CursorPage).cursor ? { cursor: (page as CursorPage).cursor } : undefined);
    const list = client.paginate('/search', { items, next, readAhead: true });
    await list.next();
    await server.received(2);
    expect(await read({ [Symbol.asyncIterator]: () => list })).toEqual([2]);
  });
});
