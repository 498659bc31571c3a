import { leaseLock } from 'passport-oauth-app/lease-lock';

/** A collection whose writes are conditional, as that of MongoDB. */
interface Leases {
  updateOne(
    filter: object,
    change: object,
    options: { upsert: boolean },
  ): Promise<{ matchedCount: number; upsertedCount: number }>;
  deleteOne(filter: object): Promise<unknown>;
  countDocuments(filter: object): Promise<number>;
}

const LEASE_MS = 30_000;

export function grantLock(leases: Leases) {
  return leaseLock(
    {
      take: async (id, owner) => {
        const ended = { _id: id, endsAt: { $lte: Date.now() } };
        const mine = { $set: { owner, endsAt: Date.now() + LEASE_MS } };
        // The key is unique: the insert of an upsert fails while another owner has the lease.
        const taken = await leases.updateOne(ended, mine, { upsert: true }).catch((error: { code?: unknown }) => {
          if (error.code === 11000) return undefined;
          throw error;
        });
        return taken !== undefined && taken.matchedCount + taken.upsertedCount > 0;
      },
      isHeld: async (id, owner) => (await leases.countDocuments({ _id: id, owner, endsAt: { $gt: Date.now() } })) > 0,
      release: async (id, owner) => void (await leases.deleteOne({ _id: id, owner })),
    },
    LEASE_MS,
  );
}
