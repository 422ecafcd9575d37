import { create } from "@bufbuild/protobuf";
import { Code, type ConnectRouter } from "@connectrpc/connect";
import { describe, expect, it } from "vitest";
import { AccountSchema, AccountState } from "../../../gen/uas/account/v1/account_pb.ts";
import { AccountService } from "../../../gen/uas/account/v1/account_service_pb.ts";
import { BillingService } from "../../../gen/uas/billing/v1/billing_service_pb.ts";
import { ErrorCode } from "../../../gen/uas/error/v1/error_pb.ts";
import { accountId, balance, createTime, refuse, time } from "./sample.ts";
import { run, runJson } from "./support.ts";

/** The default terms of an account. */
const plainTerms = {
  state: "active",
  suspendReason: null,
  suspendedAt: null,
  discountPercent: "0",
  priceList: null,
  lowBalanceThreshold: null,
  alertUrl: null,
  alertEmails: [],
  rpm: null,
  tpm: null,
  concurrency: null,
  budgets: [],
  limitWaitMs: null,
};

describe("account and topup", () => {
  const topUps: unknown[] = [];
  const routes = (router: ConnectRouter) => {
    router.service(AccountService, {
      createAccount: ({ name }) => ({ account: { accountId, name } }),
      getAccount: (request) => {
        if (request.accountId === accountId)
          return { account: { accountId, name: "A", createTime, state: AccountState.ACTIVE } };
        return refuse(Code.NotFound, ErrorCode.NOT_FOUND, "No such account");
      },
      listAccounts: ({ pageToken }) => ({
        accounts: [
          {
            accountId,
            name: pageToken === "" ? "one" : "t\u001b[31mwo",
            createTime,
            state: AccountState.ACTIVE,
          },
        ],
        nextPageToken: pageToken === "" ? "next" : "",
      }),
    });
    router.service(BillingService, {
      getBalance: () => ({ balance }),
      topUp: ({ accountId: account, amount, reference }) => {
        topUps.push([account, amount?.amountNanos, reference]);
        return { balance, replayed: reference === "again" };
      },
    });
  };

  it("account create prints the id", async () => {
    const ran = await runJson(["account", "create", "--name", "A"], { routes });
    expect(ran).toMatchObject({ code: 0, err: "", closed: 1, json: { accountId } });
    expect(topUps).toEqual([]);
  });

  it("create --balance credits with the account's own reference", async () => {
    await run(["account", "create", "--name", "A", "--balance", "10.00"], { routes });
    expect(topUps.splice(0)).toEqual([[accountId, 10_000_000_000n, `account-create:${accountId}`]]);
  });

  it("create says what to do where the credit failed after the account was made", async () => {
    const ran = await run(["account", "create", "--name", "A", "--balance", "10.00"], {
      routes: (router) => {
        router.service(AccountService, { createAccount: () => ({ account: { accountId } }) });
        router.service(BillingService, {
          topUp: () => refuse(Code.Unavailable, ErrorCode.SERVICE_UNAVAILABLE, "Database is away"),
        });
      },
    });
    expect(ran).toMatchObject({ code: 1, out: "", closed: 1 });
    expect(ran.err).toBe(
      `uas: account ${accountId} was created, but not credited: Database is away (service_unavailable); retry with: ./uas topup ${accountId} 10 --reference account-create:${accountId} --promo\n`,
    );
  });

  it("show prints decimal USD strings", async () => {
    const { json } = await runJson(["account", "show", accountId], { routes });
    const money = { balance: "10", held: "2.5", available: "7.5" };
    expect(json).toEqual({ accountId, name: "A", createdAt: time, ...money, ...plainTerms });
  });

  it("show of an unknown account is refused in one line", async () => {
    const ran = await run(["account", "show", "x", "--json"], { routes });
    expect(ran).toMatchObject({ code: 1, out: "", err: "uas: No such account (not_found)\n" });
  });

  it("list follows the pages, and lets no name steer the terminal", async () => {
    const { out } = await run(["account", "list"], { routes });
    expect(out.trimEnd().split("\n")).toEqual([
      `ACCOUNT                               STATE   CREATED                   NAME`,
      `${accountId}  active  ${time}  one`,
      `${accountId}  active  ${time}  t?[31mwo`,
    ]);
  });

  it("R-MON-9: topup says when a reference was booked before", async () => {
    const line = ["topup", accountId, "0.000000001", "--reference"];
    const first = await runJson([...line, "r1"], { routes });
    expect(first.json).toEqual({
      accountId,
      balance: "10",
      held: "2.5",
      available: "7.5",
      replayed: false,
    });
    expect(topUps.splice(0)).toEqual([[accountId, 1n, "r1"]]);
    expect((await runJson([...line, "again"], { routes })).json).toMatchObject({ replayed: true });
    const { out } = await run([...line, "again"], { routes });
    expect(out).toContain('Reference "again" was booked before: nothing changed.');
  });
});

describe("what an account is held to", () => {
  const asked: unknown[] = [];
  const routes = (router: ConnectRouter) =>
    void router.service(AccountService, {
      suspendAccount: ({ reason }) => ({
        account: {
          accountId,
          state: AccountState.SUSPENDED,
          suspendReason: reason,
          suspendTime: createTime,
        },
      }),
      resumeAccount: () => ({ account: { accountId, state: AccountState.ACTIVE } }),
      updateAccount: ({ account, updateMask }) => {
        asked.push([
          updateMask?.paths,
          account?.discountBp,
          account?.lowBalanceThreshold?.amountNanos,
        ]);
        return { account: { ...(account ?? create(AccountSchema)), state: AccountState.ACTIVE } };
      },
    });

  it.each([
    ["5s", 5_000],
    ["0s", 0],
    ["none", null],
  ])("limit --wait %s sets how long calls wait for room", async (wait, limitWaitMs) => {
    const line = ["account", "limit", accountId, "--wait", wait];
    expect((await runJson(line, { routes })).json).toMatchObject({ limitWaitMs });
    expect(asked.splice(0)).toEqual([[["limit_wait"], 0, undefined]]);
  });

  it("suspend and resume show the state", async () => {
    const { json } = await runJson(["account", "suspend", accountId, "--reason", "unpaid"], {
      routes,
    });
    expect(json).toEqual({
      accountId,
      ...plainTerms,
      state: "suspended",
      suspendReason: "unpaid",
      suspendedAt: time,
    });
    const resumed = await runJson(["account", "resume", accountId], { routes });
    expect(resumed.json).toEqual({ accountId, ...plainTerms });
  });

  it.each([
    [
      ["discount", accountId, "12.5"],
      ["discount_bp"],
      1_250,
      undefined,
      { discountPercent: "12.5" },
    ],
    [["discount", accountId, "0"], ["discount_bp"], 0, undefined, {}],
    [
      ["alert", accountId, "5.00"],
      ["low_balance_threshold"],
      0,
      5_000_000_000n,
      { lowBalanceThreshold: "5" },
    ],
    [["alert", accountId, "off"], ["low_balance_threshold"], 0, undefined, {}],
    [
      ["alert", accountId, "--url", "https://a.example/x", "--email", "a@b.example, c@d.example"],
      ["alert_url", "alert_emails"],
      0,
      undefined,
      { alertUrl: "https://a.example/x", alertEmails: ["a@b.example", "c@d.example"] },
    ],
    [
      ["alert", accountId, "--url", "none", "--email", "none"],
      ["alert_url", "alert_emails"],
      0,
      undefined,
      {},
    ],
  ])(
    "account update %j changes that value alone",
    async (line, paths, discountBp, threshold, shown) => {
      const { json } = await runJson(["account", ...line], { routes });
      expect(json).toEqual({ accountId, ...plainTerms, ...shown });
      expect(asked.splice(0)).toEqual([[paths, discountBp, threshold]]);
    },
  );
});
