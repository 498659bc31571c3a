import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { CreateTableCommand, DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { DynamoDBDocumentClient } from '@aws-sdk/lib-dynamodb';
// @ts-expect-error: it has no types.
import dynalite from 'dynalite';
import { afterAll, beforeAll, describe } from 'vitest';
import { dynamoTokenStore } from '../../docs/stores/dynamodb-token-store.js';
import { type GrantCollection, type GrantDocument, mongoTokenStore } from '../../docs/stores/mongodb-token-store.js';
import { storeChecks, testEach } from '../support/store-checks.js';

describe('the store to copy for DynamoDB, over dynalite', () => {
  const server = dynalite({ createTableMs: 0 });
  let client: DynamoDBDocumentClient;
  beforeAll(async () => {
    await once(server.listen(0, '127.0.0.1'), 'listening');
    const { port } = server.address() as AddressInfo;
    const credentials = { accessKeyId: 'any', secretAccessKey: 'any' };
    const plain = new DynamoDBClient({ endpoint: `http://127.0.0.1:${port}`, region: 'any', credentials });
    client = DynamoDBDocumentClient.from(plain);
    const key = { AttributeName: 'id' };
    await client.send(
      new CreateTableCommand({
        TableName: 'grants',
        KeySchema: [{ ...key, KeyType: 'HASH' }],
        AttributeDefinitions: [{ ...key, AttributeType: 'S' }],
        BillingMode: 'PAY_PER_REQUEST',
      }),
    );
  });
  afterAll(() => {
    client.destroy();
    server.close();
  });
  testEach(storeChecks(({ lease }) => dynamoTokenStore(client, 'grants', lease && lease * 1000)));
});

/** Speaks the API of a collection of the driver, as far as the store uses it: no server of MongoDB is at hand. */
class CollectionInMemory implements GrantCollection {
  readonly #documents = new Map<string, GrantDocument>();

  findOne(filter: object) {
    return this.#later(() => this.#matching(filter)[0] ?? null);
  }

  async *find(filter: object) {
    yield* (await this.#later(() => this.#matching(filter))).sort((one, other) => (one._id < other._id ? -1 : 1));
  }

  countDocuments(filter: object) {
    return this.#later(() => this.#matching(filter).length);
  }

  insertOne(document: GrantDocument) {
    return this.#later(() => this.#insert(document));
  }

  replaceOne(filter: object, document: object, options?: { readonly upsert?: boolean }) {
    return this.#write(filter, ({ _id }) => ({ _id, ...document }) as GrantDocument, options);
  }

  updateOne(filter: object, { $set }: { readonly $set: object }, options?: { readonly upsert?: boolean }) {
    return this.#write(filter, (found) => ({ ...found, ...$set }), options);
  }

  deleteOne(filter: object) {
    return this.#later(() =>
      this.#matching(filter)
        .slice(0, 1)
        .map(({ _id }) => this.#documents.delete(_id)),
    );
  }

  #write(filter: object, change: (found: GrantDocument) => GrantDocument, { upsert = false } = {}) {
    return this.#later(() => {
      const [found] = this.#matching(filter);
      if (found) this.#documents.set(found._id, change(found));
      // The fields of the filter that are values become those of the document.
      else if (upsert) this.#insert(change({ _id: Reflect.get(filter, '_id'), endsAt: new Date(0) }));
      return { matchedCount: found ? 1 : 0 };
    });
  }

  #insert(document: GrantDocument) {
    if (this.#documents.has(document._id)) throw Object.assign(new Error('E11000 duplicate key'), { code: 11000 });
    this.#documents.set(document._id, document);
  }

  #matching(filter: object): GrantDocument[] {
    const compare: Record<string, (value: unknown, limit: unknown) => boolean> = {
      $gt: (value, limit) => Number(value) > Number(limit),
      $lte: (value, limit) => Number(value) <= Number(limit),
      $gte: (value, limit) => String(value) >= String(limit),
      $lt: (value, limit) => String(value) < String(limit),
    };
    const isMatch = (value: unknown, wanted: unknown) =>
      typeof wanted === 'object' && wanted !== null
        ? value !== undefined && Object.entries(wanted).every(([name, limit]) => compare[name]?.(value, limit))
        : value === wanted;
    return [...this.#documents.values()].filter((document) =>
      Object.entries(filter).every(([name, wanted]) => isMatch(Reflect.get(document, name), wanted)),
    );
  }

  /** Does what the server does at once, and answers later. */
  async #later<T>(work: () => T): Promise<T> {
    await new Promise((resolve) => setImmediate(resolve));
    return work();
  }
}

describe('the store to copy for MongoDB, over what speaks as its driver', () => {
  const collection = new CollectionInMemory();
  testEach(storeChecks(({ lease }) => mongoTokenStore(collection, lease && lease * 1000)));
});
