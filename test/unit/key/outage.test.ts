import { afterEach, beforeEach, expect, test } from "vitest";
import { ErrorCode } from "../../../src/core/errors.ts";
import { newSecret } from "../../../src/key/secret.ts";
import { type Cluster, openCluster, remember, soon, stopped, within1s } from "./cluster.ts";
import type { Owner, Rooms } from "./rooms.ts";

let cluster: Cluster;
let rooms: Rooms;
let owner: Owner;

beforeEach(async () => {
  cluster = await openCluster();
  ({ rooms, owner } = cluster);
});
afterEach(() => cluster.close());

test("R-AUTH-3: without its listener a node asks the database, until the feed is back and memory empty", async () => {
  const proxy = await cluster.proxy();
  // Before the start: the next poll reports later keys again.
  const removed = await rooms.owner();
  const node = await cluster.start({ feedUrl: proxy.url, clock: stopped });
  for (const { secret } of [owner, removed]) await remember(node, { secret });
  proxy.refuse(true);
  proxy.cut();
  await within1s(() => node.stats().isCurrent).toBe(false);
  await rooms.keys.disableKey(owner);
  // No poll can find a row that is gone.
  await rooms.database.pool.query("delete from api_key where id = $1", [removed.keyId]);
  // Not one acceptance: what is in memory says "enabled".
  expect(node.stats().accepted).toBe(2);
  const { hits } = node.stats();
  expect(await node.authenticate(owner.secret)).toBeUndefined();
  expect(await node.authenticate(owner.secret)).toBeUndefined();
  expect(node.stats().hits).toBe(hits);
  expect(node.lines.filter((line) => line.includes("of changed API keys are lost"))).toHaveLength(
    1,
  );
  proxy.refuse(false);
  await soon(() => node.stats().isCurrent).toBe(true);
  expect(node.stats().accepted).toBe(0);
  for (const { secret } of [owner, removed]) {
    expect(await node.authenticate(secret)).toBeUndefined();
  }
});

test("R-AUTH-3: a listener killed in the database is replaced, and nothing is missed meanwhile", async () => {
  const node = await cluster.start();
  await remember(node, owner);
  const { rows } = await rooms.database.pool.query(
    "select pg_terminate_backend(pid) as killed from pg_stat_activity " +
      "where application_name = 'uas-key-changes' and datname = current_database()",
  );
  expect(rows).toEqual([{ killed: true }]);
  await rooms.keys.disableKey(owner);
  await within1s(() => node.authenticate(owner.secret)).toBeUndefined();
  await soon(() => node.stats().isCurrent).toBe(true);
  expect(await node.authenticate(owner.secret)).toBeUndefined();
  await rooms.keys.enableKey(owner);
  await within1s(() => node.authenticate(owner.secret)).toBeDefined();
  await remember(node, owner);
});

test("R-AUTH-3: a feed that hangs without a word is not trusted beyond 0.8 s", async () => {
  let nowMs = 0;
  const proxy = await cluster.proxy();
  const node = await cluster.start({ feedUrl: proxy.url, clock: () => nowMs });
  await remember(node, owner);
  proxy.hang();
  await rooms.keys.disableKey(owner);
  nowMs = 800;
  expect(await node.authenticate(owner.secret)).toBeDefined();
  nowMs = 801;
  expect(await node.authenticate(owner.secret)).toBeUndefined();
  proxy.resume();
  await soon(() => node.stats().isCurrent).toBe(true);
  expect(await node.authenticate(owner.secret)).toBeUndefined();
});

test("before it is started, and after it is closed, an authenticator asks the database", async () => {
  const node = cluster.create();
  expect(await node.authenticate(owner.secret)).toBeDefined();
  await rooms.keys.disableKey(owner);
  expect(await node.authenticate(owner.secret)).toBeUndefined();
  await node.start();
  await node.close();
  await rooms.keys.enableKey(owner);
  expect(await node.authenticate(owner.secret)).toBeDefined();
  expect(node.stats().hits).toBe(0);
});

test.for(["refuses", "hangs"])(
  "R-MON-7: a database that %s is 503, never a verdict",
  async (how) => {
    const proxy = await cluster.proxy();
    const node = await cluster.start({ feedUrl: proxy.url, poolUrl: proxy.url });
    const disabled = await rooms.owner();
    await rooms.keys.disableKey(disabled);
    await remember(node, owner);
    if (how === "hangs") proxy.hang();
    else proxy.refuse(true);
    if (how === "refuses") proxy.cut();
    await soon(() => node.stats().isCurrent).toBe(false);
    const startMs = performance.now();
    for (const result of await Promise.allSettled([
      node.authenticate(owner.secret),
      node.authenticate(disabled.secret),
      node.authenticate(newSecret()),
    ])) {
      expect(result).toMatchObject({ reason: { code: ErrorCode.SERVICE_UNAVAILABLE } });
    }
    // The limit is 0.9 s; what is beyond is this machine's own delay. A statement may go unanswered
    // for minutes.
    expect(performance.now() - startMs).toBeLessThan(15_000);
    expect(await node.authenticate("no key at all")).toBeUndefined();
    proxy.refuse(false);
    proxy.resume();
    await expect.poll(() => node.authenticate(owner.secret).catch(() => undefined)).toBeDefined();
    expect(await node.authenticate(disabled.secret)).toBeUndefined();
  },
);

test("an authenticator starts without a database, and follows once there is one", async () => {
  const proxy = await cluster.proxy();
  proxy.refuse(true);
  const node = cluster.create({ feedUrl: proxy.url });
  await node.start();
  expect(node.stats().isCurrent).toBe(false);
  expect(await node.authenticate(owner.secret)).toBeDefined();
  proxy.refuse(false);
  await soon(() => node.stats().isCurrent).toBe(true);
  await remember(node, owner);
});
