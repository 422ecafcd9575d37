/** `uas topup`, `uas refund`, `uas account adjust` and `uas ledger list`. */
import { Code, type ConnectRouter } from "@connectrpc/connect";
import { describe, expect, it } from "vitest";
import { AccountService } from "../../../gen/uas/account/v1/account_service_pb.ts";
import { LedgerKind, TopUpSource } from "../../../gen/uas/billing/v1/billing_pb.ts";
import { BillingService } from "../../../gen/uas/billing/v1/billing_service_pb.ts";
import { CallService } from "../../../gen/uas/billing/v1/call_service_pb.ts";
import { ErrorCode } from "../../../gen/uas/error/v1/error_pb.ts";
import { accountId, balance, createTime, keyId, refuse, time, usd } from "./sample.ts";
import { run, runJson } from "./support.ts";

const money = { balance: "10", held: "2.5", available: "7.5" };

describe("topup and adjust", () => {
  const asked: unknown[] = [];
  const routes = (router: ConnectRouter) => {
    router.service(AccountService, { createAccount: () => ({ account: { accountId } }) });
    router.service(BillingService, {
      topUp: ({ source, reference }) => {
        asked.push([source, reference]);
        return { balance };
      },
      adjustBalance: ({ amount, reason, reference }) => {
        asked.push([amount?.amountNanos, reason, reference]);
        return { balance, replayed: reference === "again" };
      },
    });
  };

  it("distinguish a grant from a payment; the opening balance of an account is a grant", async () => {
    const line = ["topup", accountId, "1", "--reference", "r"];
    await run(line, { routes });
    await run([...line, "--promo"], { routes });
    await run(["account", "create", "--name", "A", "--balance", "10.00"], { routes });
    expect(asked.splice(0)).toEqual([
      [TopUpSource.PAYMENT, "r"],
      [TopUpSource.PROMO, "r"],
      [TopUpSource.PROMO, `account-create:${accountId}`],
    ]);
  });

  it.each([
    ["-5.00", -5_000_000_000n],
    ["5", 5_000_000_000n],
    ["-0.000000001", -1n],
  ])("adjust books %s, with its reason", async (amount, amountNanos) => {
    const line = ["account", "adjust", accountId, amount, "--reason", "typo", "--reference", "r"];
    const { json } = await runJson(line, { routes });
    expect(json).toEqual({ accountId, ...money, replayed: false });
    expect(asked.splice(0)).toEqual([[amountNanos, "typo", "r"]]);
  });

  it("R-MON-9: adjust says when a reference was booked before", async () => {
    const line = ["account", "adjust", accountId, "1", "--reason", "x", "--reference", "again"];
    const { out } = await run(line, { routes });
    expect(out).toContain('Reference "again" was booked before: nothing changed.');
    asked.length = 0;
  });

  it.each([[["--reason", "r"]], [["--reference", "r"]]])(
    "adjust with %j alone is wrong usage",
    async (options) => {
      const ran = await run(["account", "adjust", accountId, "1", ...options], { routes });
      expect(ran).toMatchObject({ code: 2, out: "" });
      expect(asked).toEqual([]);
    },
  );
});

describe("refund", () => {
  const asked: unknown[] = [];
  const charged = { callId: keyId, accountId, cost: usd(5n) };
  const routes = (calls: readonly (typeof charged)[]) => ({
    routes: (router: ConnectRouter) =>
      void router
        .service(CallService, { listCalls: () => ({ calls: [...calls] }) })
        .service(BillingService, {
          refund: ({ accountId: account, callId, amount, reference }) => {
            if (callId !== keyId) refuse(Code.NotFound, ErrorCode.NOT_FOUND, "No such call");
            asked.push([account, callId, amount?.amountNanos, reference]);
            return { balance };
          },
        }),
  });
  const line = (call: string) => ["refund", call, "0.000000005", "--reference", "sorry"];

  it("gives back the one charged call with a request id", async () => {
    const free = { ...charged, callId: accountId, cost: usd(0n) };
    const { json } = await runJson(line("req-1"), routes([free, charged]));
    expect(json).toEqual({ accountId, callId: keyId, ...money, replayed: false });
    expect(asked.splice(0)).toEqual([["", keyId, 5n, "sorry"]]);
  });

  it("takes a call id where no call has it as request id", async () => {
    const { json } = await runJson(line(keyId), routes([]));
    expect(json).toMatchObject({ callId: keyId });
    asked.length = 0;
    const { code, err } = await run(line(accountId), routes([]));
    expect([code, err]).toEqual([1, "uas: No such call (not_found)\n"]);
  });

  it.each([
    ["no call", []],
    ["no charged call", [{ ...charged, cost: usd(0n) }]],
    ["several charged calls", [charged, { ...charged, callId: accountId }]],
  ])(
    "refuses a request id of %s: money goes back for one call, never for a guess",
    async (_, calls) => {
      const ran = await run(line("req-1"), routes(calls));
      expect(ran).toMatchObject({ code: 1, out: "" });
      expect(ran.err).toContain('"req-1"');
      expect(asked).toEqual([]);
    },
  );
});

describe("ledger list", () => {
  it("ledger list prints entries with their reasons and the balance after each", async () => {
    const entry = { transactionId: keyId, createTime };
    const routes = (router: ConnectRouter) => {
      router.service(AccountService, { getAccount: () => ({ account: { accountId } }) });
      router.service(BillingService, {
        listLedgerEntries: () => ({
          entries: [
            {
              ...entry,
              kind: LedgerKind.ADJUSTMENT,
              amount: usd(-5n),
              reference: "r",
              reason: "typo",
              balanceAfter: usd(0n),
            },
            { ...entry, kind: LedgerKind.CHARGE, amount: usd(-1n) },
          ],
        }),
      });
    };
    const { json } = await runJson(["ledger", "list", "--account", accountId], { routes });
    const known = { transactionId: keyId, createdAt: time };
    expect(json).toEqual([
      {
        ...known,
        kind: "adjustment",
        amount: "-0.000000005",
        balanceAfter: "0",
        reference: "r",
        reason: "typo",
      },
      {
        ...known,
        kind: "charge",
        amount: "-0.000000001",
        balanceAfter: null,
        reference: null,
        reason: null,
      },
    ]);
  });

  it("asks for kinds and times; a kind that there is not is wrong usage and names those there are", async () => {
    const asked: unknown[] = [];
    const routes = (router: ConnectRouter) => {
      router.service(AccountService, { getAccount: () => ({ account: { accountId } }) });
      router.service(BillingService, {
        listLedgerEntries: ({ kinds, fromTime, toTime }) => {
          asked.push([kinds, fromTime?.seconds, toTime?.seconds]);
          return {};
        },
      });
    };
    const list = ["ledger", "list", "--account", accountId];
    const range = ["--since", "2027-01-01", "--until", "2027-02-01"];
    await run([...list, "--kind", "top_up, promo", ...range], { routes });
    await run(list, { routes });
    const kinds = [LedgerKind.TOP_UP, LedgerKind.PROMO];
    expect(asked).toEqual([
      [kinds, 1_798_761_600n, 1_801_440_000n],
      [[], undefined, undefined],
    ]);
    const ran = await run([...list, "--kind", "gift"], { routes });
    expect(ran).toMatchObject({ code: 2, out: "" });
    expect(ran.err).toContain("top_up,charge,refund,adjustment,promo,late_settlement");
    expect(asked).toHaveLength(2);
  });
});
