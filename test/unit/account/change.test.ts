/** Accounts: suspended and resumed (R-KEY-4), with a discount and a threshold. */
import { BudgetPeriod } from "../../../gen/uas/type/v1/budget_pb.ts";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type AccountSchema, AccountState } from "../../../gen/uas/account/v1/account_pb.ts";
import { ErrorCode } from "../../../src/core/errors.ts";
import { codeOf, openRooms, type Rooms } from "../key/rooms.ts";

const unknownId = "0190aaaa-0000-7000-8000-000000000000";
let rooms: Rooms;

beforeAll(async () => {
  rooms = await openRooms();
});
afterAll(() => rooms.close());

const usd = (amountNanos: bigint) => ({ currencyCode: "USD", amountNanos });

async function newAccount(): Promise<string> {
  return (await rooms.accounts.createAccount({ name: "a" })).account?.accountId ?? "";
}

async function lowBelow(accountId: string): Promise<unknown> {
  const text = "select available, held, low_below from balance where account_id = $1";
  return (await rooms.database.pool.query(text, [accountId])).rows[0];
}

describe("suspending", () => {
  it("stores the reason and the time, which a repetition keeps; resuming clears both", async () => {
    const accountId = await newAccount();
    const fresh = (await rooms.accounts.getAccount({ accountId })).account;
    expect(fresh).toMatchObject({ state: AccountState.ACTIVE, suspendReason: "" });
    const first = await rooms.accounts.suspendAccount({ accountId, reason: " unpaid  " });
    expect(first.account).toMatchObject({
      state: AccountState.SUSPENDED,
      suspendReason: "unpaid",
    });
    const again = await rooms.accounts.suspendAccount({ accountId, reason: "fraud" });
    expect(again.account).toEqual({ ...first.account, suspendReason: "fraud" });
    expect((await rooms.accounts.getAccount({ accountId })).account).toEqual(again.account);
    expect((await rooms.accounts.resumeAccount({ accountId })).account).toEqual(fresh);
    expect((await rooms.accounts.resumeAccount({ accountId })).account).toEqual(fresh);
  });

  it("shows the account's own session that it is suspended, but not the reason", async () => {
    const accountId = await newAccount();
    await rooms.accounts.suspendAccount({ accountId, reason: "fraud" });
    const { accounts } = rooms.as({ kind: "session", accountId });
    const { account } = await accounts.getAccount({ accountId });
    expect(account).toMatchObject({ state: AccountState.SUSPENDED, suspendReason: "" });
    expect(account?.suspendTime).toBeDefined();
  });

  it("R-ERR-7: refuses what is no reason, and what is no account", async () => {
    const accountId = await newAccount();
    for (const reason of ["", "  ", "a\nb", "\0", "x".repeat(501)]) {
      const call = rooms.accounts.suspendAccount({ accountId, reason });
      expect(await codeOf(call)).toBe(ErrorCode.INVALID_REQUEST);
    }
    for (const id of ["", "x", unknownId]) {
      const calls = [
        () => rooms.accounts.suspendAccount({ accountId: id, reason: "r" }),
        () => rooms.accounts.resumeAccount({ accountId: id }),
      ];
      for (const call of calls) expect(await codeOf(call())).toBe(ErrorCode.NOT_FOUND);
    }
    const { account } = await rooms.accounts.getAccount({ accountId });
    expect(account?.state).toBe(AccountState.ACTIVE);
  });
});

type AccountInit = MessageInitShape<typeof AccountSchema>;

async function update(account: AccountInit, paths: string[], accounts = rooms.accounts) {
  return (await accounts.updateAccount({ account, updateMask: { paths } })).account;
}

describe("UpdateAccount", () => {
  it("changes exactly what the mask names, and clears what the account does not have", async () => {
    const accountId = await newAccount();
    const all = { name: "b", discountBp: 10_000, lowBalanceThreshold: usd(5n) };
    const paths = ["name", "discount_bp", "low_balance_threshold"];
    expect(await update({ accountId, ...all }, paths)).toMatchObject(all);
    expect(await update({ accountId, name: "c" }, ["name"])).toMatchObject({ ...all, name: "c" });
    const cleared = await update({ accountId }, paths.slice(1));
    expect(cleared).toMatchObject({ name: "c", discountBp: 0 });
    expect(cleared?.lowBalanceThreshold).toBeUndefined();
    expect((await rooms.accounts.getAccount({ accountId })).account).toEqual(cleared);
  });

  it("puts the threshold where the ledger reads it, and leaves the money alone", async () => {
    const accountId = await newAccount();
    const paths = ["low_balance_threshold"];
    await update({ accountId, lowBalanceThreshold: usd(7n) }, paths);
    expect(await lowBelow(accountId)).toEqual({ available: "0", held: "0", low_below: "7" });
    const { pool } = rooms.database;
    await pool.query("update balance set available = 9 where account_id = $1", [accountId]);
    await update({ accountId, lowBalanceThreshold: usd(8n) }, paths);
    expect(await lowBelow(accountId)).toEqual({ available: "9", held: "0", low_below: "8" });
    await update({ accountId }, paths);
    expect(await lowBelow(accountId)).toEqual({ available: "9", held: "0", low_below: null });
  });

  it("lets a session change its own name and threshold, never its discount", async () => {
    const [accountId, other] = [await newAccount(), await newAccount()];
    const { accounts } = rooms.as({ kind: "session", accountId });
    const mine = { accountId, name: "mine", lowBalanceThreshold: usd(1n), discountBp: 100 };
    const paths = ["name", "low_balance_threshold"];
    expect(await update(mine, paths, accounts)).toMatchObject({ ...mine, discountBp: 0 });
    const calls = [
      update(mine, ["discount_bp"], accounts),
      update({ ...mine, accountId: other }, ["name"], accounts),
    ];
    expect(await Promise.all(calls.map(codeOf))).toEqual([
      ErrorCode.ACCESS_DENIED,
      ErrorCode.NOT_FOUND,
    ]);
  });

  it("lets a session set the budgets of its own account; missing ones are left out", async () => {
    const accountId = await newAccount();
    const { accounts } = rooms.as({ kind: "session", accountId });
    const amount = usd(5n);
    const budgets = [
      { period: BudgetPeriod.MONTH, amount },
      { period: BudgetPeriod.DAY, amount, timeZone: "asia/shanghai" },
      { period: BudgetPeriod.WEEK, amount, timeZone: "Asia/Kathmandu" },
    ];
    const set = await update({ accountId, budgets }, ["budgets"], accounts);
    expect(set?.budgets).toMatchObject([
      { period: BudgetPeriod.DAY, amount, timeZone: "Asia/Shanghai", spent: usd(0n) },
      { period: BudgetPeriod.WEEK, amount, timeZone: "Asia/Kathmandu", spent: usd(0n) },
      { period: BudgetPeriod.MONTH, amount, timeZone: "UTC", spent: usd(0n) },
    ]);
    expect((await update({ accountId, name: "same" }, ["name"]))?.budgets).toEqual(set?.budgets);
    const { accounts: listed } = await rooms.accounts.listAccounts({ query: accountId });
    expect(listed[0]?.budgets).toEqual(set?.budgets);
    expect((await update({ accountId }, ["budgets"], accounts))?.budgets).toEqual([]);
  });

  it.each<[string, AccountInit, string[]]>([
    ["no mask", { name: "n" }, []],
    ["a member that is not changed so", {}, ["state"]],
    ["a reason", { suspendReason: "r" }, ["suspend_reason"]],
    ["no name", {}, ["name"]],
    ["a negative discount", { discountBp: -1 }, ["discount_bp"]],
    ["more than the whole price", { discountBp: 10_001 }, ["discount_bp"]],
    ["a threshold of nothing", { lowBalanceThreshold: usd(0n) }, ["low_balance_threshold"]],
    ["a negative threshold", { lowBalanceThreshold: usd(-1n) }, ["low_balance_threshold"]],
    ["a budget of nothing", { budgets: [{ period: 1, amount: usd(0n) }] }, ["budgets"]],
    ["a budget without a period", { budgets: [{ amount: usd(1n) }] }, ["budgets"]],
    [
      "a budget for an unknown period",
      { budgets: [{ period: 4 as 3, amount: usd(1n) }] },
      ["budgets"],
    ],
    ["a budget without an amount", { budgets: [{ period: 1 }] }, ["budgets"]],
    [
      "two budgets for a period",
      { budgets: [1n, 2n].map((nanos) => ({ period: 2 as const, amount: usd(nanos) })) },
      ["budgets"],
    ],
    [
      "a budget of an unknown time zone",
      { budgets: [{ period: 1, amount: usd(1n), timeZone: "Mars/Base" }] },
      ["budgets"],
    ],
    [
      "a budget of an offset",
      { budgets: [{ period: 1, amount: usd(1n), timeZone: "+08:00" }] },
      ["budgets"],
    ],
    [
      "another currency",
      { lowBalanceThreshold: { currencyCode: "EUR", amountNanos: 1n } },
      ["low_balance_threshold"],
    ],
  ])("R-ERR-7: refuses %s, and changes nothing", async (_, init, paths) => {
    const accountId = await newAccount();
    const before = (await rooms.accounts.getAccount({ accountId })).account;
    expect(await codeOf(update({ accountId, ...init }, paths))).toBe(ErrorCode.INVALID_REQUEST);
    expect((await rooms.accounts.getAccount({ accountId })).account).toEqual(before);
  });
});
