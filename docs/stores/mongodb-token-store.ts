// Grants in MongoDB: copy this file. Give it `db.collection<GrantDocument>('grants', { readConcern: 'majority',
// readPreference: 'primary', writeConcern: { w: 'majority' } })`, with the index { endsAt: 1 }, { expireAfterSeconds: 0 }.
import type { ListedTokenStore, StoredGrant } from 'passport-oauth-app';
import { leaseLock } from 'passport-oauth-app/lease-lock';

/** A grant, or a lock. */
export interface GrantDocument {
  readonly _id: string;
  readonly endsAt: Date;
  readonly version?: number;
  readonly grant?: string;
  readonly owner?: string;
  readonly leaseEndsAt?: number;
}

/** The part of a collection that is used. */
export interface GrantCollection {
  findOne(filter: object): Promise<GrantDocument | null>;
  find(filter: object, options: object): AsyncIterable<GrantDocument>;
  countDocuments(filter: object): Promise<number>;
  insertOne(document: GrantDocument): Promise<unknown>;
  replaceOne(filter: object, document: object, options?: object): Promise<{ readonly matchedCount: number }>;
  updateOne(filter: object, change: object, options?: object): Promise<unknown>;
  deleteOne(filter: object): Promise<unknown>;
}

/** Milliseconds that a grant is kept after its last write. */
const TTL = 30 * 24 * 60 * 60 * 1000;

/** @param leaseMs Length of a lock, in milliseconds. All hosts need clocks that agree within a second. */
export function mongoTokenStore(grants: GrantCollection, leaseMs = 30_000): ListedTokenStore {
  // A store returns what it was given, fields that it does not know included: so the grant is one text.
  const fields = (grant: StoredGrant) => ({
    version: grant.version,
    grant: JSON.stringify(grant),
    endsAt: new Date(Date.now() + TTL),
  });
  const isAlive = () => ({ endsAt: { $gt: new Date() } });
  /** Resolves to false if another document has the key, which is unique. */
  const isNew = async (writing: Promise<unknown>) => {
    try {
      await writing;
      return true;
    } catch (error) {
      if (Object(error).code === 11000) return false;
      throw error;
    }
  };
  return {
    get: async (_id) => {
      const found = await grants.findOne({ _id, ...isAlive() });
      return found?.grant === undefined ? undefined : JSON.parse(found.grant);
    },
    set: async (_id, grant) => void (await grants.replaceOne({ _id }, fields(grant), { upsert: true })),
    delete: async (_id, version) => void (await grants.deleteOne(version === undefined ? { _id } : { _id, version })),
    update: async (_id, grant, version) => {
      const { matchedCount } = await grants.replaceOne({ _id, version, ...isAlive() }, fields(grant));
      return matchedCount > 0;
    },
    add: async (_id, grant) => {
      await grants.deleteOne({ _id, endsAt: { $lte: new Date() } });
      return await isNew(grants.insertOne({ _id, ...fields(grant) }));
    },
    lock: leaseLock(
      {
        take: (id, owner) => {
          const ended = { _id: `lock ${id}`, leaseEndsAt: { $lte: Date.now() } };
          const lease = { owner, leaseEndsAt: Date.now() + leaseMs, endsAt: new Date(Date.now() + TTL) };
          // The insert of an upsert fails while another owner has the lease.
          return isNew(grants.updateOne(ended, { $set: lease }, { upsert: true }));
        },
        isHeld: async (id, owner) =>
          (await grants.countDocuments({ _id: `lock ${id}`, owner, leaseEndsAt: { $gt: Date.now() } })) > 0,
        release: async (id, owner) => void (await grants.deleteOne({ _id: `lock ${id}`, owner })),
      },
      leaseMs,
    ),
    list: async function* (prefix = '') {
      const range = { _id: { $gte: prefix, $lt: `${prefix}\x7f` }, ...isAlive() };
      for await (const { _id } of grants.find(range, { projection: { _id: 1 }, sort: { _id: 1 } }))
        if (!/^(?:lock |login:|limit:|frame:)/.test(_id)) yield _id;
    },
  };
}
