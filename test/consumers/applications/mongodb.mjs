// A MongoDB in memory, as far as mongoose and connect-mongo need one: no binary of MongoDB is in a package registry.
// Speaks OP_MSG, and OP_QUERY for the first greeting. Prints its address, and ends with its process.
import { createServer } from 'node:net';
import { BSON } from 'bson';
import { Query, updateOne } from 'mingo';

/** Documents by the name of their collection. */
const collections = new Map();
const documentsOf = (name) => collections.get(name) ?? collections.set(name, []).get(name);

const greeting = { ismaster: true, isWritablePrimary: true, helloOk: true, minWireVersion: 0, maxWireVersion: 21 };
const limits = { maxBsonObjectSize: 2 ** 24, maxMessageSizeBytes: 48_000_000, maxWriteBatchSize: 100_000 };
const cursor = (name, firstBatch) => ({ cursor: { id: BSON.Long.ZERO, ns: `test.${name}`, firstBatch } });

const commands = {
  hello: () => ({ ...greeting, ...limits, logicalSessionTimeoutMinutes: 30, readOnly: false }),
  ping: () => ({}),
  endSessions: () => ({}),
  listCollections: () => cursor('$cmd.listCollections', []),
  createIndexes: () => ({}),
  insert: ({ insert, documents }) => ({ n: documentsOf(insert).push(...documents) && documents.length }),
  find: ({ find, filter, limit = 0 }) => {
    const found = new Query(filter ?? {}).find(documentsOf(find)).all();
    return cursor(find, limit > 0 ? found.slice(0, limit) : found);
  },
  delete: ({ delete: name, deletes }) => {
    let n = 0;
    for (const { q, limit } of deletes) {
      const found = new Query(q)
        .find(documentsOf(name))
        .all()
        .slice(0, limit || undefined);
      n += found.length;
      collections.set(
        name,
        documentsOf(name).filter((document) => !found.includes(document)),
      );
    }
    return { n };
  },
  update: ({ update, updates }) => {
    const documents = documentsOf(update);
    const upserted = [];
    let [n, nModified] = [0, 0];
    for (const [index, { q, u, upsert }] of updates.entries()) {
      const { $setOnInsert, $set, ...others } = u;
      const { _id, ...set } = $set ?? {};
      let filter = q;
      if (!new Query(q).find(documents).hasNext()) {
        if (!upsert) continue;
        filter = { _id: q._id ?? _id ?? new BSON.ObjectId() };
        documents.push({ ...filter });
        upserted.push({ index, ...filter });
        Object.assign(set, $setOnInsert);
      }
      n += 1;
      const change = { ...others, ...(Object.keys(set).length > 0 ? { $set: set } : {}) };
      nModified += updateOne(documents, filter, change).modifiedCount;
    }
    return { n, nModified, ...(upserted.length > 0 ? { upserted } : {}) };
  },
};

function answer(command) {
  const [name] = Object.keys(command);
  const run = name.toLowerCase() === 'ismaster' ? commands.hello : commands[name];
  if (!run) return { ok: 0, errmsg: `no such command: ${name}`, code: 59, codeName: 'CommandNotFound' };
  try {
    return { ...run(command), ok: 1 };
  } catch ({ message }) {
    return { ok: 0, errmsg: message, code: 2, codeName: 'BadValue' };
  }
}

const decode = (bytes) => BSON.deserialize(bytes, { promoteBuffers: false });

/** The command of an OP_MSG: a document, and sequences of further ones that belong to its fields. */
function commandOf(body) {
  let command = {};
  for (let at = 4; at < body.length; ) {
    const kind = body[at];
    const size = body.readInt32LE(at + 1);
    const section = body.subarray(at + 1, at + 1 + size);
    if (kind === 0) command = { ...decode(section), ...command };
    else {
      const end = section.indexOf(0, 4);
      const documents = [];
      for (let from = end + 1; from < size; from += section.readInt32LE(from)) {
        documents.push(decode(section.subarray(from, from + section.readInt32LE(from))));
      }
      // The command's name is its first key: the document of kind 0 comes first.
      command[section.toString('utf8', 4, end)] = documents;
    }
    at += 1 + size;
  }
  return command;
}

function respond(message) {
  const [id, operation] = [message.readInt32LE(4), message.readInt32LE(12)];
  const body = message.subarray(16);
  const isQuery = operation === 2004;
  const command = isQuery ? decode(body.subarray(body.indexOf(0, 4) + 9)) : commandOf(body);
  const reply = BSON.serialize(answer(command));
  // OP_REPLY: flags, cursor, start, one document. OP_MSG: flags, a section of kind 0.
  const before = isQuery ? Buffer.alloc(20) : Buffer.alloc(5);
  if (isQuery) before.writeInt32LE(1, 16);
  const header = Buffer.alloc(16);
  header.writeInt32LE(16 + before.length + reply.length, 0);
  header.writeInt32LE(id, 8);
  header.writeInt32LE(isQuery ? 1 : 2013, 12);
  return Buffer.concat([header, before, reply]);
}

const server = createServer((socket) => {
  let pending = Buffer.alloc(0);
  socket.on('data', (bytes) => {
    pending = Buffer.concat([pending, bytes]);
    while (pending.length >= 4 && pending.length >= pending.readInt32LE(0)) {
      const size = pending.readInt32LE(0);
      socket.write(respond(pending.subarray(0, size)));
      pending = pending.subarray(size);
    }
  });
  socket.on('error', () => {});
});
server.listen(0, '127.0.0.1', () => console.log(`mongodb://127.0.0.1:${server.address().port}/test`));
