/**
 * R-KEY-4: what limits a key or its account is in force on every node within a second, and by the
 * clock.
 */
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { KeyCaller } from "../../../src/core/caller.ts";
import { type Cluster, type Node, openCluster, remember, soon, within1s } from "./cluster.ts";
import type { Owner, Rooms } from "./rooms.ts";

let cluster: Cluster;
let rooms: Rooms;
let owner: Owner;

beforeEach(async () => {
  cluster = await openCluster();
  ({ rooms, owner } = cluster);
});
afterEach(() => cluster.close());

async function callers(nodes: readonly Node[]): Promise<(KeyCaller | undefined)[]> {
  const found = await Promise.all(nodes.map((node) => node.authenticate(owner.secret)));
  return found.map((caller) => (caller?.kind === "key" ? caller : undefined));
}

async function twoNodes(): Promise<readonly Node[]> {
  const nodes = [await cluster.start(), await cluster.start()];
  for (const node of nodes) await remember(node, owner);
  return nodes;
}

const usd = (amountNanos: bigint) => ({ currencyCode: "USD", amountNanos });

test("a suspended account is known on every node within 1 s, for all its keys, and so is its return", async () => {
  const nodes = await twoNodes();
  const { accountId } = owner;
  const second = await rooms.keys.createKey({ accountId });
  for (const node of nodes) await remember(node, second);
  const suspended = async (): Promise<unknown[]> => {
    const both = [owner, second].flatMap(({ secret }) =>
      nodes.map(async (node) => {
        const caller = await node.authenticate(secret);
        return caller?.kind === "key" && caller.isSuspended;
      }),
    );
    return Promise.all(both);
  };
  await rooms.accounts.suspendAccount({ accountId, reason: "unpaid" });
  await within1s(suspended).toEqual([true, true, true, true]);
  await rooms.accounts.resumeAccount({ accountId });
  await within1s(suspended).toEqual([false, false, false, false]);
});

test("another account's suspension changes nothing in memory", async () => {
  const node = await cluster.start();
  const other = await rooms.owner();
  await remember(node, owner);
  await remember(node, other);
  await rooms.accounts.suspendAccount({ accountId: other.accountId, reason: "unpaid" });
  await within1s(async () => {
    const caller = await node.authenticate(other.secret);
    return caller?.kind === "key" && caller.isSuspended;
  }).toBe(true);
  expect((await callers([node]))[0]).toMatchObject({ isSuspended: false });
});

test("the poll finds a suspension whose notice never comes", async () => {
  await rooms.database.pool.query("alter table account disable trigger account_notice");
  const nodes = await twoNodes();
  await rooms.accounts.suspendAccount({ accountId: owner.accountId, reason: "unpaid" });
  await within1s(async () => (await callers(nodes)).map((caller) => caller?.isSuspended)).toEqual([
    true,
    true,
  ]);
});

test("changed models, limit and discount are known on every node within 1 s", async () => {
  const nodes = await twoNodes();
  const { keyId, accountId } = owner;
  await rooms.keys.updateKey({
    key: { keyId, models: ["a"], spendLimit: usd(5n) },
    updateMask: { paths: ["models", "spend_limit"] },
  });
  await rooms.accounts.updateAccount({
    account: { accountId, discountBp: 1_250 },
    updateMask: { paths: ["discount_bp"] },
  });
  const expected = { models: new Set(["a"]), keyLimitNanos: 5n, discountBp: 1_250 };
  await within1s(() => callers(nodes)).toMatchObject([expected, expected]);
});

test("an expiry that was put off lets the key in again on every node within 1 s", async () => {
  await rooms.database.pool.query("update api_key set expire_time = now()");
  const nodes = [await cluster.start(), await cluster.start()];
  expect(await callers(nodes)).toEqual([undefined, undefined]);
  expect(nodes.map(({ refusals }) => refusals)).toEqual([["expired"], ["expired"]]);
  const expireTime = timestampFromDate(new Date(Date.now() + 3_600_000));
  const update = {
    key: { keyId: owner.keyId, expireTime },
    updateMask: { paths: ["expire_time"] },
  };
  await rooms.keys.updateKey(update);
  await within1s(async () => (await callers(nodes)).map((caller) => caller?.keyId)).toEqual([
    owner.keyId,
    owner.keyId,
  ]);
});

test("a remembered key ends by the clock, without a notification, and as an unknown one", async () => {
  const { pool } = rooms.database;
  // Only the clock may change the result.
  await pool.query("alter table api_key disable trigger all");
  await pool.query("update api_key set expire_time = clock_timestamp() + interval '600 ms'");
  let nowMs = 0;
  const node = await cluster.start({ clock: () => nowMs });
  await remember(node, owner);
  const isOver = async (): Promise<boolean> => {
    const text = "select bool_and(expire_time < clock_timestamp()) as over from api_key";
    return (await pool.query<{ over: boolean }>(text)).rows[0]?.over === true;
  };
  await soon(isOver).toBe(true);
  const { lookUps } = node.stats();
  expect(await node.authenticate(owner.secret)).toBeDefined();
  expect(node.stats().lookUps).toBe(lookUps);
  nowMs = 600;
  expect(node.stats().isCurrent).toBe(true);
  expect(await node.authenticate(owner.secret)).toBeUndefined();
  expect(node.refusals).toEqual(["expired"]);
  expect(node.lines.map((line) => JSON.parse(line))).toEqual([
    { message: "refused an API key", keyId: owner.keyId, reason: "expired" },
  ]);
});

test("a deleted or disabled key is refused for that, expired or not", async () => {
  await rooms.keys.disableKey(owner);
  await rooms.database.pool.query("update api_key set expire_time = now()");
  const node = await cluster.start();
  await node.authenticate(owner.secret);
  await rooms.keys.deleteKey(owner);
  await within1s(async () => {
    await node.authenticate(owner.secret);
    return node.refusals.at(-1);
  }).toBe("deleted");
  expect(node.refusals[0]).toBe("disabled");
});
