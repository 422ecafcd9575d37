import { Pool } from "pg";
import { afterEach, beforeEach, expect, test } from "vitest";
import { digestBytes, digestSecret, maskSecret, newSecret } from "../../../src/key/secret.ts";
import { type Cluster, openCluster, remember, stopped, soon, within1s } from "./cluster.ts";
import type { Owner, Rooms } from "./rooms.ts";
import { newId } from "../../../src/core/uuid.ts";

let cluster: Cluster;
let rooms: Rooms;
let owner: Owner;

beforeEach(async () => {
  cluster = await openCluster();
  ({ rooms, owner } = cluster);
});
afterEach(() => cluster.close());

function insertKey(secret: string): Promise<unknown> {
  return rooms.database.pool.query(
    "insert into api_key (id, account_id, name, digest, masked) values ($1, $2, '', $3, $4)",
    [newId(), owner.accountId, digestBytes(digestSecret(secret)), maskSecret(secret)],
  );
}

test("R-AUTH-3: a disabled key is refused on every node within 1 s, and works again as soon", async () => {
  const nodes = [await cluster.start(), await cluster.start()];
  for (const node of nodes) await remember(node, owner);
  const accepted = async (): Promise<boolean[]> => {
    const callers = nodes.map((node) => node.authenticate(owner.secret));
    return (await Promise.all(callers)).map((caller) => caller !== undefined);
  };
  await rooms.keys.disableKey(owner);
  await within1s(accepted).toEqual([false, false]);
  await rooms.keys.enableKey(owner);
  await within1s(accepted).toEqual([true, true]);
  await rooms.keys.deleteKey(owner);
  await within1s(accepted).toEqual([false, false]);
});

test.for([
  ["an update", "update api_key set state = 2"],
  ["a delete", "delete from api_key"],
  ["a truncate", "truncate api_key"],
])("R-AUTH-3: %s by hand counts like one of the service", async ([, sql = ""]) => {
  const node = await cluster.start();
  await remember(node, owner);
  await rooms.database.pool.query(sql);
  await within1s(() => node.authenticate(owner.secret)).toBeUndefined();
});

test("R-AUTH-3: the poll finds a change whose notice never comes", async () => {
  const { pool } = rooms.database;
  await pool.query("alter table api_key disable trigger api_key_notice");
  const node = await cluster.start();
  await remember(node, owner);
  await rooms.keys.disableKey(owner);
  await within1s(() => node.authenticate(owner.secret)).toBeUndefined();
});

test("R-AUTH-3: a change committed long after it was made is still found", async () => {
  const { pool } = rooms.database;
  // By the poll alone: a notice is sent at the commit anyhow.
  await pool.query("alter table api_key disable trigger api_key_notice");
  const node = await cluster.start();
  const writer = await pool.connect();
  try {
    await writer.query("begin");
    await writer.query("update api_key set state = 2 where id = $1", [owner.keyId]);
    // Later changes are seen first: a cursor over the time of changes would be beyond ours by now.
    const later = await rooms.owner();
    await remember(node, later);
    await rooms.keys.disableKey(later);
    await within1s(() => node.authenticate(later.secret)).toBeUndefined();
    await remember(node, owner);
    await writer.query("commit");
    await within1s(() => node.authenticate(owner.secret)).toBeUndefined();
  } finally {
    writer.release();
  }
});

test("R-AUTH-3: an answer read before a change is not remembered after it", async () => {
  const gate = Promise.withResolvers<void>();
  let isSlow = false;
  const read = Promise.withResolvers<void>();
  const wrap = (pool: Pool): Pool => {
    const slow: Pool = Object.create(pool);
    const query: (...args: readonly unknown[]) => unknown = Reflect.get(pool, "query");
    slow.query = async (...args: readonly unknown[]): Promise<never> => {
      const result = await Reflect.apply(query, pool, args);
      if (isSlow) {
        read.resolve();
        await gate.promise;
      }
      return result as never;
    };
    return slow;
  };
  const node = await cluster.start({ wrap, clock: stopped });
  const unknown = newSecret();
  await soon(async () => {
    await node.authenticate(unknown);
    return node.stats().refused;
  }).toBe(1);
  isSlow = true;
  const early = node.authenticate(owner.secret);
  await read.promise;
  await rooms.keys.disableKey(owner);
  // Any change empties the memory of refused keys: the sign that the notice is here.
  await within1s(() => node.stats().refused).toBe(0);
  isSlow = false;
  const late = node.authenticate(owner.secret);
  gate.resolve();
  expect(await early).toBeDefined();
  expect(await late).toBeUndefined();
  expect(await node.authenticate(owner.secret)).toBeUndefined();
  expect(node.stats().accepted).toBe(0);
});

test("a key that was unknown a moment ago works within 1 s of its creation, on every node", async () => {
  const nodes = [await cluster.start(), await cluster.start()];
  const secret = newSecret();
  for (const node of nodes) {
    await soon(async () => {
      expect(await node.authenticate(secret)).toBeUndefined();
      return node.stats().hits;
    }).toBeGreaterThan(0);
  }
  await insertKey(secret);
  for (const node of nodes) {
    await within1s(async () => (await node.authenticate(secret))?.kind).toBe("key");
  }
});
