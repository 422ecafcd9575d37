import { afterAll, beforeAll, expect, test } from "vitest";
import { type Key, KeyState } from "../../../gen/uas/key/v1/key_pb.ts";
import { anonymous } from "../../../src/core/caller.ts";
import { ErrorCode } from "../../../src/core/errors.ts";
import { type KeyAction, keyTransitions } from "../../../src/key/state.ts";
import { codeOf, openRooms, type Rooms } from "./rooms.ts";

const unknownId = "0190aaaa-0000-7000-8000-000000000000";
let rooms: Rooms;

beforeAll(async () => {
  rooms = await openRooms();
});
afterAll(() => rooms.close());

function act(action: KeyAction, keyId: string): Promise<{ key?: Key | undefined }> {
  const { keys } = rooms;
  if (action === "enable") return keys.enableKey({ keyId });
  return action === "disable" ? keys.disableKey({ keyId }) : keys.deleteKey({ keyId });
}

/** Actions that lead from a fresh key into each state. */
const waysInto: Readonly<Record<string, readonly KeyAction[]>> = {
  [KeyState.ENABLED]: [],
  [KeyState.DISABLED]: ["disable"],
  [KeyState.DELETED]: ["delete"],
};

test("a key is created enabled, shown masked, its secret once", async () => {
  const { accountId } = await rooms.owner();
  const made = await rooms.keys.createKey({
    accountId,
    name: "  first  ",
    models: ["b", "a", "b "],
  });
  expect(made.secret).toMatch(/^uas_[A-Za-z0-9]{32}$/);
  expect(made.key).toMatchObject({
    accountId,
    name: "first",
    masked: `${made.secret.slice(0, 8)}…${made.secret.slice(-4)}`,
    state: KeyState.ENABLED,
    models: ["b", "a"],
  });
  expect(made.key?.deleteTime).toBeUndefined();
  const { key } = await rooms.keys.getKey({ keyId: made.key?.keyId ?? "" });
  expect(key).toEqual(made.key);
});

for (const action of ["enable", "disable", "delete"] as const) {
  for (const [state, next] of Object.entries(keyTransitions[action])) {
    test(`R-KEY-2: ${action} in state ${state} leads to ${next ?? "a refusal"}`, async () => {
      const { keyId } = await rooms.owner();
      for (const step of waysInto[state] ?? []) await act(step, keyId);
      const before = (await rooms.keys.getKey({ keyId })).key;
      expect(before?.state).toBe(Number(state));
      if (next === undefined) {
        expect(await codeOf(act(action, keyId))).toBe(ErrorCode.INVALID_REQUEST);
        expect((await rooms.keys.getKey({ keyId })).key).toEqual(before);
      } else {
        const { key } = await act(action, keyId);
        expect(key?.state).toBe(next);
        expect(key?.deleteTime === undefined).toBe(next !== KeyState.DELETED);
        expect((await rooms.keys.getKey({ keyId })).key).toEqual(key);
      }
    });
  }
}

test("R-KEY-2: of concurrent enabling and deleting, deletion wins in every order", async () => {
  const { keyId } = await rooms.owner();
  await act("disable", keyId);
  const actions: readonly KeyAction[] = ["enable", "delete", "disable", "enable", "delete"];
  await Promise.allSettled(actions.map((action) => act(action, keyId)));
  expect((await rooms.keys.getKey({ keyId })).key?.state).toBe(KeyState.DELETED);
});

test("R-KEY-2: the database itself keeps a deleted key deleted", async () => {
  const { keyId } = await rooms.owner();
  await act("delete", keyId);
  const update = rooms.database.pool.query("update api_key set state = 1 where id = $1", [keyId]);
  await expect(update).rejects.toThrow("final");
});

test("R-AUTH-4: no table contains a secret", async () => {
  const { secret } = await rooms.owner();
  const { pool } = rooms.database;
  const { rows: tables } = await pool.query<{ name: string }>(
    "select quote_ident(tablename) as name from pg_tables where schemaname = 'public'",
  );
  expect(tables.length).toBeGreaterThan(2);
  const dumps = await Promise.all(
    tables.map(({ name }) => pool.query<{ row: string }>(`select t::text as row from ${name} t`)),
  );
  const text = dumps.flatMap(({ rows }) => rows.map(({ row }) => row)).join("\n");
  expect(text).toContain(secret.slice(-4));
  for (const form of [secret, secret.slice(4), Buffer.from(secret).toString("hex")]) {
    expect(text).not.toContain(form);
  }
});

test("keys are listed newest first, page by page, deleted ones included", async () => {
  const { accountId, keyId: first } = await rooms.owner();
  const more = [1, 2, 3, 4].map((number) => rooms.keys.createKey({ accountId, name: `${number}` }));
  await Promise.all(more);
  await act("delete", first);
  const all = (await rooms.keys.listKeys({ accountId })).keys;
  expect(all).toHaveLength(5);
  expect(all.map(({ keyId }) => keyId)).toEqual(
    all
      .map(({ keyId }) => keyId)
      .toSorted()
      .toReversed(),
  );
  expect(all.at(-1)).toMatchObject({ keyId: first, state: KeyState.DELETED });
  const paged: Key[] = [];
  let pageToken = "";
  do {
    const page = await rooms.keys.listKeys({ accountId, pageSize: 2, pageToken });
    expect(page.keys.length).toBeLessThanOrEqual(2);
    paged.push(...page.keys);
    pageToken = page.nextPageToken;
  } while (pageToken !== "");
  expect(paged).toEqual(all);
});

test("a session reaches its own account's keys; others look as if they did not exist", async () => {
  const [mine, other] = [await rooms.owner(), await rooms.owner()];
  const { keys } = rooms.as({ kind: "session", accountId: mine.accountId });
  expect((await keys.listKeys({ accountId: mine.accountId })).keys).toHaveLength(1);
  expect((await keys.disableKey({ keyId: mine.keyId })).key?.state).toBe(KeyState.DISABLED);
  expect((await keys.createKey({ accountId: mine.accountId })).secret).not.toBe("");
  const failures = [];
  for (const { accountId, keyId } of [other, { accountId: unknownId, keyId: unknownId }]) {
    const calls = [
      keys.listKeys({ accountId }),
      keys.createKey({ accountId }),
      keys.getKey({ keyId }),
      keys.enableKey({ keyId }),
      keys.disableKey({ keyId }),
      keys.deleteKey({ keyId }),
    ];
    const results = await Promise.allSettled(calls);
    failures.push(results.map((result) => result.status === "rejected" && `${result.reason}`));
  }
  expect(failures[0]).toEqual(failures[1]);
  expect(failures[0]?.every((text) => text && text.includes("there is no such"))).toBe(true);
  const untouched = await rooms.keys.listKeys({ accountId: other.accountId });
  expect(untouched.keys.map(({ state }) => state)).toEqual([KeyState.ENABLED]);
});

test("callers without an account reach nothing, whatever the edge let through", async () => {
  const { accountId, keyId } = await rooms.owner();
  for (const caller of [anonymous, { kind: "key", accountId, keyId, models: undefined } as const]) {
    const { keys } = rooms.as(caller);
    expect(await codeOf(keys.getKey({ keyId }))).toBe(ErrorCode.NOT_FOUND);
    expect(await codeOf(keys.createKey({ accountId }))).toBe(ErrorCode.NOT_FOUND);
  }
});

test("R-ERR-7: bad input is refused with its reason, never 5xx", async () => {
  const { accountId } = await rooms.owner();
  const { keys } = rooms;
  for (const id of [
    "",
    "x",
    "\0",
    unknownId,
    accountId.toUpperCase(),
    `{${accountId}}`,
    "é".repeat(99),
  ]) {
    expect(await codeOf(keys.getKey({ keyId: id }))).toBe(ErrorCode.NOT_FOUND);
    expect(await codeOf(keys.deleteKey({ keyId: id }))).toBe(ErrorCode.NOT_FOUND);
    expect(await codeOf(keys.listKeys({ accountId: id }))).toBe(ErrorCode.NOT_FOUND);
    expect(await codeOf(keys.createKey({ accountId: id }))).toBe(ErrorCode.NOT_FOUND);
  }
  const bad = [
    { name: "x".repeat(201) },
    { name: "a\0b" },
    { name: "a\nb" },
    { name: "\ud800" },
    { models: [""] },
    { models: [" "] },
    { models: ["x".repeat(201)] },
    { models: ["a\0"] },
    { models: Array.from({ length: 1_001 }, (_, index) => `m${index}`) },
  ];
  for (const input of bad) {
    expect(await codeOf(keys.createKey({ accountId, ...input }))).toBe(ErrorCode.INVALID_REQUEST);
  }
  const full = {
    name: "😀".repeat(200),
    models: Array.from({ length: 1_000 }, (_, index) => `vendor/model {"${index}", \\}`),
  };
  const { key } = await keys.createKey({ accountId, ...full });
  expect((await keys.getKey({ keyId: key?.keyId ?? "" })).key).toMatchObject(full);
  for (const page of [{ pageSize: -1 }, { pageToken: "x" }, { pageToken: "MTo" }]) {
    expect(await codeOf(keys.listKeys({ accountId, ...page }))).toBe(ErrorCode.INVALID_REQUEST);
  }
});
