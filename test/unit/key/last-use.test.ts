import { timestampMs } from "@bufbuild/protobuf/wkt";
import type { Pool } from "pg";
import { afterEach, beforeEach, expect, test } from "vitest";
import { type KeyUse, LastUse } from "../../../src/key/last-use.ts";
import { newSecret } from "../../../src/key/secret.ts";
import { type Cluster, openCluster, remember } from "./cluster.ts";

let cluster: Cluster;

beforeEach(async () => {
  cluster = await openCluster();
});
afterEach(() => cluster.close());

async function useTime(keyId: string): Promise<number | undefined> {
  const { key } = await cluster.rooms.keys.getKey({ keyId });
  return key?.lastUseTime && timestampMs(key.lastUseTime);
}

test("R-KEY-4: a key shows its last use once its node has written it", async () => {
  const { owner, rooms } = cluster;
  const idle = await rooms.owner();
  const node = await cluster.start();
  expect(await useTime(owner.keyId)).toBeUndefined();
  await remember(node, owner);
  await node.authenticate(newSecret());
  await node.close();
  const { rows } = await rooms.database.pool.query<{ ms: number }>(
    "select extract(epoch from clock_timestamp())::float8 * 1000 as ms",
  );
  const used = (await useTime(owner.keyId)) ?? 0;
  expect(used).toBeGreaterThan(await createTime(owner.keyId));
  expect(used).toBeLessThanOrEqual(rows[0]?.ms ?? 0);
  expect(await useTime(idle.keyId)).toBeUndefined();
  const listed = await rooms.keys.listKeys({ accountId: owner.accountId });
  expect(listed.keys.map(({ lastUseTime }) => lastUseTime !== undefined)).toEqual([true]);
});

async function createTime(keyId: string): Promise<number> {
  const { key } = await cluster.rooms.keys.getKey({ keyId });
  return key?.createTime ? timestampMs(key.createTime) : Number.NaN;
}

test("a use is written once per batch however often it was, in one statement, and never back in time", async () => {
  const { owner, rooms } = cluster;
  const { pool } = rooms.database;
  const asked: unknown[][] = [];
  const counting = {
    query: (text: string, values: unknown[]) => {
      asked.push(values);
      return pool.query(text, values);
    },
  };
  let nowMs = 0;
  const warned: string[] = [];
  const lastUse = new LastUse({
    pool: counting as unknown as Pool,
    clock: () => nowMs,
    warn: (message) => warned.push(message),
  });
  const use: KeyUse = { keyId: owner.keyId, usedMs: 0, isNoted: false };
  for (let call = 0; call < 1_000; call++) lastUse.note(use, 5_000);
  nowMs = 5_000;
  await lastUse.write();
  await lastUse.write();
  expect(asked).toEqual([[[owner.keyId], [0]]]);
  const first = await useTime(owner.keyId);
  // Another process, which has the key from earlier: an hour ago.
  lastUse.note(use, nowMs - 3_600_000);
  await lastUse.close();
  expect(asked).toHaveLength(2);
  expect(await useTime(owner.keyId)).toBe(first);
  expect(warned).toEqual([]);
});

test("an unreachable database costs a warning, not the process", async () => {
  const warned: object[] = [];
  const pool = { query: () => Promise.reject(new Error("gone")) };
  const lastUse = new LastUse({
    pool: pool as unknown as Pool,
    clock: () => 0,
    warn: (message, fields) => warned.push({ message, ...fields }),
  });
  lastUse.note({ keyId: "k", usedMs: 0, isNoted: false }, 0);
  await lastUse.close();
  expect(warned).toEqual([
    {
      message: "the last use of keys could not be recorded",
      keys: 1,
      err: new Error("gone"),
    },
  ]);
});
