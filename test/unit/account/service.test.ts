import { afterAll, beforeAll, expect, test } from "vitest";
import { AccountState } from "../../../gen/uas/account/v1/account_pb.ts";
import { createBudgets } from "../../../src/billing/budgets.ts";
import { createAccountService } from "../../../src/account/service.ts";
import { anonymous } from "../../../src/core/caller.ts";
import { systemClock } from "../../../src/core/clock.ts";
import { openDatabase } from "../../../src/db/database.ts";
import { ErrorCode } from "../../../src/core/errors.ts";
import { startFaultProxy } from "../../support/fault-proxy.ts";
import { codeOf, openRooms, type Rooms } from "../key/rooms.ts";

const unknownId = "0190aaaa-0000-7000-8000-000000000000";
let rooms: Rooms;

beforeAll(async () => {
  rooms = await openRooms();
});
afterAll(() => rooms.close());

async function createAccount(name: string): Promise<string> {
  return (await rooms.accounts.createAccount({ name })).account?.accountId ?? "";
}

test("an account is created with a trimmed name, and found again", async () => {
  const { account } = await rooms.accounts.createAccount({ name: "  Café 😀 " });
  expect(account).toMatchObject({ name: "Café 😀" });
  expect(account?.accountId).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7/);
  expect(Number(account?.createTime?.seconds)).toBeGreaterThan(1_700_000_000);
  const found = await rooms.accounts.getAccount({ accountId: account?.accountId ?? "" });
  expect(found.account).toEqual(account);
});

test("accounts are listed newest first, page by page", async () => {
  const made = [await createAccount("a"), await createAccount("b"), await createAccount("c")];
  const [newest, middle, oldest] = made.toSorted().toReversed();
  const first = await rooms.accounts.listAccounts({ pageSize: 2 });
  expect(first.accounts.map(({ accountId }) => accountId)).toEqual([newest, middle]);
  const second = await rooms.accounts.listAccounts({
    pageSize: 1_000_000,
    pageToken: first.nextPageToken,
  });
  expect(second.accounts[0]?.accountId).toBe(oldest);
  expect(second.nextPageToken).toBe("");
});

test("accounts are searched by a part of their name, their id and their state", async () => {
  const percent = await createAccount("Needle 100%_\\ GmbH");
  const other = await createAccount("needle 100xx GmbH");
  await rooms.accounts.suspendAccount({ accountId: other, reason: "test" });
  const found = async (
    query: string,
    state: AccountState = AccountState.UNSPECIFIED,
  ): Promise<string[]> => {
    const { accounts } = await rooms.accounts.listAccounts({ query, state });
    return accounts.map(({ accountId }) => accountId);
  };
  expect(await found("  nEEDLE ")).toEqual([other, percent]);
  expect(await found("100%_\\")).toEqual([percent]);
  expect(await found(other.toUpperCase())).toEqual([other]);
  expect(await found("needle", AccountState.ACTIVE)).toEqual([percent]);
  expect(await found("needle", AccountState.SUSPENDED)).toEqual([other]);
  expect(await found("no such name")).toEqual([]);
  for (const wrong of [{ query: "x".repeat(201) }, { query: "a\0" }, { state: 70_000 as never }]) {
    expect(await codeOf(rooms.accounts.listAccounts(wrong))).toBe(ErrorCode.INVALID_REQUEST);
  }
});

test("a session sees its own account; any other looks as if it did not exist", async () => {
  const [mine, other] = [await createAccount("mine"), await createAccount("other")];
  const { accounts } = rooms.as({ kind: "session", accountId: mine });
  expect((await accounts.getAccount({ accountId: mine })).account?.name).toBe("mine");
  const messages = await Promise.all(
    [other, unknownId].map((accountId) => accounts.getAccount({ accountId }).catch(String)),
  );
  expect(messages[0]).toBe(messages[1]);
  expect(messages[0]).toContain("there is no such account");
  const nobody = rooms.as(anonymous).accounts.getAccount({ accountId: mine });
  expect(await codeOf(nobody)).toBe(ErrorCode.NOT_FOUND);
});

test("R-ERR-7: bad input is refused with its reason, never 5xx", async () => {
  for (const name of ["", "   ", "x".repeat(201), "a\0", "a\u2028b", "\udfff"]) {
    expect(await codeOf(rooms.accounts.createAccount({ name }))).toBe(ErrorCode.INVALID_REQUEST);
  }
  for (const accountId of ["", "x", "\0", "../..", unknownId]) {
    expect(await codeOf(rooms.accounts.getAccount({ accountId }))).toBe(ErrorCode.NOT_FOUND);
  }
  for (const page of [{ pageSize: -5 }, { pageToken: "?" }]) {
    expect(await codeOf(rooms.accounts.listAccounts(page))).toBe(ErrorCode.INVALID_REQUEST);
  }
});

test("R-MON-7: whether an account exists is 503 while the database is unreachable, and known again after", async () => {
  const accountId = await createAccount("away");
  const proxy = await startFaultProxy(rooms.url);
  const database = await openDatabase(proxy.url);
  try {
    const { exists } = createAccountService({
      clock: systemClock,
      orm: database.orm,
      budgets: createBudgets(database.pool),
    });
    expect(await exists(accountId)).toBe(true);
    expect(await exists(unknownId)).toBe(false);
    expect(await exists("'; drop table account; --")).toBe(false);
    proxy.refuse(true);
    proxy.cut();
    await expect(exists(accountId)).rejects.toMatchObject({ code: ErrorCode.SERVICE_UNAVAILABLE });
    proxy.refuse(false);
    await expect.poll(() => exists(accountId)).toBe(true);
  } finally {
    await database.close();
    await proxy.close();
  }
});
