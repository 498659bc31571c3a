// Grants in DynamoDB: copy this file. The table has the partition key `id`, a string. Let it delete by `endsAt` (TTL).
import { ConditionalCheckFailedException } from '@aws-sdk/client-dynamodb';
import { DeleteCommand, type DynamoDBDocumentClient, GetCommand, PutCommand, ScanCommand } from '@aws-sdk/lib-dynamodb';
import type { ListedTokenStore, StoredGrant } from 'passport-oauth-app';
import { leaseLock } from 'passport-oauth-app/lease-lock';

/** Seconds that a grant is kept after its last write. */
const TTL = 30 * 24 * 60 * 60;

/** @param leaseMs Length of a lock, in milliseconds. All hosts need clocks that agree within a second. */
export function dynamoTokenStore(
  client: DynamoDBDocumentClient,
  TableName: string,
  leaseMs = 30_000,
): ListedTokenStore {
  const now = () => Math.floor(Date.now() / 1000);
  const read = async (id: string) => {
    const { Item } = await client.send(new GetCommand({ TableName, Key: { id }, ConsistentRead: true }));
    return Item;
  };
  /** Resolves to false where the condition of a write does not hold. */
  const isWritten = async (writing: Promise<unknown>) => {
    try {
      await writing;
      return true;
    } catch (error) {
      if (error instanceof ConditionalCheckFailedException) return false;
      throw error;
    }
  };
  const put = (Item: object, ConditionExpression?: string, ExpressionAttributeValues?: Record<string, unknown>) =>
    isWritten(client.send(new PutCommand({ TableName, Item, ConditionExpression, ExpressionAttributeValues })));
  const remove = (id: string, ConditionExpression?: string, ExpressionAttributeValues?: Record<string, unknown>) =>
    isWritten(
      client.send(new DeleteCommand({ TableName, Key: { id }, ConditionExpression, ExpressionAttributeValues })),
    );
  // A store returns what it was given, fields that it does not know included: so the grant is one text.
  const item = (id: string, grant: StoredGrant) => ({
    id,
    grantVersion: grant.version,
    grant: JSON.stringify(grant),
    endsAt: now() + TTL,
  });
  return {
    get: async (id) => {
      const found = await read(id);
      // What has ended stays for a while.
      return found && found.endsAt > now() ? JSON.parse(found.grant) : undefined;
    },
    set: async (id, grant) => void (await put(item(id, grant))),
    delete: async (id, version) => {
      if (version === undefined) await remove(id);
      else await remove(id, 'grantVersion = :version', { ':version': version });
    },
    update: (id, grant, version) => {
      const values = { ':version': version, ':now': now() };
      return put(item(id, grant), 'grantVersion = :version AND endsAt > :now', values);
    },
    add: (id, grant) => put(item(id, grant), 'attribute_not_exists(id) OR endsAt <= :now', { ':now': now() }),
    lock: leaseLock(
      {
        take: (id, leaseOwner) => {
          const lease = { id: `lock ${id}`, leaseOwner, leaseEndsAt: Date.now() + leaseMs, endsAt: now() + TTL };
          return put(lease, 'attribute_not_exists(id) OR leaseEndsAt <= :now', { ':now': Date.now() });
        },
        isHeld: async (id, owner) => {
          const lease = await read(`lock ${id}`);
          return lease?.leaseOwner === owner && lease?.leaseEndsAt > Date.now();
        },
        release: async (id, owner) => void (await remove(`lock ${id}`, 'leaseOwner = :owner', { ':owner': owner })),
      },
      leaseMs,
    ),
    // DynamoDB has no index over all keys: this reads the whole table, page by page.
    list: async function* (prefix = '') {
      let ExclusiveStartKey: Record<string, unknown> | undefined;
      do {
        const page = await client.send(new ScanCommand({ TableName, ConsistentRead: true, ExclusiveStartKey }));
        for (const { id, endsAt } of page.Items ?? [])
          if (id.startsWith(prefix) && !/^(?:lock |login:|limit:|frame:)/.test(id) && endsAt > now()) yield id;
        ExclusiveStartKey = page.LastEvaluatedKey;
      } while (ExclusiveStartKey);
    },
  };
}
