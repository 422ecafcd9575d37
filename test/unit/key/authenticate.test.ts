import { afterEach, beforeEach, expect, test } from "vitest";
import { newSecret } from "../../../src/key/secret.ts";
import { type Cluster, openCluster, remember, stopped } from "./cluster.ts";
import type { Owner, Rooms } from "./rooms.ts";

let cluster: Cluster;
let rooms: Rooms;
let owner: Owner;

beforeEach(async () => {
  cluster = await openCluster();
  ({ rooms, owner } = cluster);
});
afterEach(() => cluster.close());

test("a key gives its account and models, from memory the second time", async () => {
  const node = await cluster.start({ clock: stopped });
  const narrow = await rooms.owner(["a", "b"]);
  const first = await node.authenticate(owner.secret);
  const { accountId, keyId } = owner;
  expect(first).toEqual({
    kind: "key",
    accountId,
    keyId,
    models: undefined,
    keyLimitNanos: undefined,
    discountBp: 0,
    isSuspended: false,
  });
  expect(await node.authenticate(narrow.secret)).toMatchObject({ models: new Set(["a", "b"]) });
  await remember(node, owner);
  const { lookUps } = node.stats();
  expect(await node.authenticate(owner.secret)).toEqual(first);
  expect(node.stats().lookUps).toBe(lookUps);
});

test("concurrent look-ups of one key share one query", async () => {
  const node = await cluster.start({ clock: stopped });
  const found = await Promise.all(
    Array.from({ length: 50 }, () => node.authenticate(owner.secret)),
  );
  expect(new Set(found.map((caller) => caller?.kind === "key" && caller.keyId))).toEqual(
    new Set([owner.keyId]),
  );
  expect(node.stats().lookUps).toBe(1);
});

test("R-AUTH-2: refusals are counted by their true reason, and reported without the key", async () => {
  const node = await cluster.start({ clock: stopped });
  const [disabled, deleted, unknown] = [await rooms.owner(), await rooms.owner(), newSecret()];
  await rooms.keys.disableKey({ keyId: disabled.keyId });
  await rooms.keys.deleteKey({ keyId: deleted.keyId });
  for (const secret of [disabled.secret, deleted.secret, unknown, "sk-garbage", "", "\0"]) {
    expect(await node.authenticate(secret)).toBeUndefined();
  }
  expect(node.refusals).toEqual([
    "disabled",
    "deleted",
    "unknown",
    "unknown",
    "unknown",
    "unknown",
  ]);
  expect(node.stats().lookUps).toBe(3);
  const told = node.lines.map((line) => JSON.parse(line));
  expect(told).toEqual([
    { message: "refused an API key", keyId: disabled.keyId, reason: "disabled" },
    { message: "refused an API key", keyId: deleted.keyId, reason: "deleted" },
  ]);
  for (const secret of [disabled.secret, deleted.secret, unknown]) {
    expect(node.lines.join()).not.toContain(secret.slice(4));
  }
});

test("R-ID-4: the owner of a recognised but invalid key, from the database and from memory", async () => {
  const node = await cluster.start({ clock: stopped });
  const [disabled, deleted] = [await rooms.owner(), await rooms.owner()];
  await rooms.keys.disableKey({ keyId: disabled.keyId });
  await rooms.keys.deleteKey({ keyId: deleted.keyId });
  await remember(node, disabled);
  await remember(node, deleted);
  const { lookUps } = node.stats();
  const known = ({ accountId, keyId }: Owner, reason: string) => ({
    kind: "refused",
    accountId,
    keyId,
    reason,
  });
  expect(await node.identify(disabled.secret)).toEqual(known(disabled, "disabled"));
  expect(await node.identify(deleted.secret)).toEqual(known(deleted, "deleted"));
  expect(node.stats().lookUps).toBe(lookUps);
  expect(await node.identify(newSecret())).toBeUndefined();
});

test("made-up keys cannot push a real one out of memory", async () => {
  const node = await cluster.start({ clock: stopped });
  await remember(node, owner);
  await Promise.all(Array.from({ length: 500 }, () => node.authenticate(newSecret())));
  expect(node.stats()).toMatchObject({ accepted: 1, refused: 500 });
  const { hits } = node.stats();
  await node.authenticate(owner.secret);
  expect(node.stats().hits).toBe(hits + 1);
});
