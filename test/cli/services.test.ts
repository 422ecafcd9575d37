import { create } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError, type ConnectRouter } from "@connectrpc/connect";
import { describe, expect, it } from "vitest";
import { AccountService } from "../../gen/uas/account/v1/account_service_pb.ts";
import { CallEnding } from "../../gen/uas/billing/v1/billing_pb.ts";
import { BillingService } from "../../gen/uas/billing/v1/billing_service_pb.ts";
import { ErrorCode, ErrorDetailSchema } from "../../gen/uas/error/v1/error_pb.ts";
import { KeyState } from "../../gen/uas/key/v1/key_pb.ts";
import { KeyService } from "../../gen/uas/key/v1/key_service_pb.ts";
import { UsageSource } from "../../gen/uas/type/v1/usage_pb.ts";
import { run, runJson } from "./support.ts";

const accountId = "01890000-0000-7000-8000-000000000001";
const keyId = "01890000-0000-7000-8000-000000000002";
const time = "2026-11-21T09:30:00.000Z";
const createTime = timestampFromDate(new Date(time));
const usd = (amountNanos: bigint) => ({ currencyCode: "USD", amountNanos });
const balance = {
  accountId,
  balance: usd(10_000_000_000n),
  held: usd(2_500_000_000n),
  available: usd(7_500_000_000n),
};

function refuse(code: Code, detail: ErrorCode, message: string): never {
  const value = create(ErrorDetailSchema, { code: detail });
  throw new ConnectError(message, code, undefined, [{ desc: ErrorDetailSchema, value }]);
}

describe("account and topup", () => {
  const topUps: unknown[] = [];
  const routes = (router: ConnectRouter) => {
    router.service(AccountService, {
      createAccount: ({ name }) => ({ account: { accountId, name } }),
      getAccount: (request) => {
        if (request.accountId === accountId)
          return { account: { accountId, name: "A", createTime } };
        return refuse(Code.NotFound, ErrorCode.NOT_FOUND, "No such account");
      },
      listAccounts: ({ pageToken }) => ({
        accounts: [{ accountId, name: pageToken === "" ? "one" : "t\u001b[31mwo", createTime }],
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

  it("create prints the id", async () => {
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
      `uas: account ${accountId} was created, but not credited: Database is away (service_unavailable); retry with: npx uas topup ${accountId} 10 --reference account-create:${accountId}\n`,
    );
  });

  it("show prints decimal USD strings", async () => {
    const { json } = await runJson(["account", "show", accountId], { routes });
    const money = { balance: "10", held: "2.5", available: "7.5" };
    expect(json).toEqual({ accountId, name: "A", createdAt: time, ...money });
  });

  it("show of an unknown account is refused in one line", async () => {
    const ran = await run(["account", "show", "x", "--json"], { routes });
    expect(ran).toMatchObject({ code: 1, out: "", err: "uas: No such account (not_found)\n" });
  });

  it("list follows the pages, and lets no name steer the terminal", async () => {
    const { out } = await run(["account", "list"], { routes });
    expect(out.trimEnd().split("\n")).toEqual([
      `ACCOUNT                               NAME      CREATED`,
      `${accountId}  one       ${time}`,
      `${accountId}  t?[31mwo  ${time}`,
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

describe("key", () => {
  const made: unknown[] = [];
  const key = { keyId, accountId, name: "n", masked: "uas_abcd…wxyz", models: ["demo-chat"] };
  const routes = (router: ConnectRouter) => {
    router.service(KeyService, {
      createKey: ({ accountId: account, name, models }) => {
        made.push({ account, name, models });
        return { key, secret: "uas_secret" };
      },
      disableKey: (request) => ({ key: { keyId: request.keyId, state: KeyState.DISABLED } }),
      enableKey: (request) => ({ key: { keyId: request.keyId, state: KeyState.ENABLED } }),
      deleteKey: (request) => ({ key: { keyId: request.keyId, state: KeyState.DELETED } }),
      listKeys: () => ({ keys: [{ ...key, state: KeyState.ENABLED, createTime }] }),
    });
  };

  it("create prints the key once, and warns of a model that is not configured", async () => {
    const line = ["key", "create", "--account", accountId, "--models", "demo-chat, nope"];
    const ran = await runJson(line, { routes });
    expect(ran.json).toEqual({ keyId, key: "uas_secret" });
    expect(ran.err).toBe(
      'warning: model "nope" is not configured (there is: demo-chat, demo/instant)\n',
    );
    expect(made).toEqual([{ account: accountId, name: "", models: ["demo-chat", "nope"] }]);
  });

  it.each([
    ["disable", "disabled"],
    ["enable", "enabled"],
    ["delete", "deleted"],
  ])("%s", async (verb, state) => {
    const { json } = await runJson(["key", verb, keyId], { routes });
    expect(json).toEqual({ keyId, state });
  });

  it("list shows no secret", async () => {
    const { json } = await runJson(["key", "list", "--account", accountId], { routes });
    expect(json).toEqual([
      {
        keyId,
        name: "n",
        masked: "uas_abcd…wxyz",
        state: "enabled",
        models: ["demo-chat"],
        createdAt: time,
        deletedAt: null,
      },
    ]);
  });
});

describe("calls", () => {
  const call = {
    callId: keyId,
    requestId: "req-1",
    accountId,
    keyId,
    model: "demo-chat",
    vendor: "demo",
    status: 200,
    ending: CallEnding.COMPLETED,
    usageSource: UsageSource.UPSTREAM,
    usage: { inputTokens: 12, cachedInputTokens: 4, outputTokens: 30 },
    cost: usd(62_100n),
    held: usd(2_050_000n),
    priceVersion: "abc",
    startTime: createTime,
    durationMs: 120,
    firstByteMs: 15,
    stream: true,
    path: "/v1/chat/completions",
  };
  const refused = { ...call, status: 402, errorCode: "insufficient_balance", vendor: "" };
  const asked: unknown[] = [];
  const routes = (router: ConnectRouter) => {
    router.service(AccountService, { getAccount: () => ({ account: { accountId } }) });
    router.service(BillingService, {
      findCalls: ({ requestId, accountId: account, pageSize }) => {
        asked.push([requestId, account, pageSize]);
        return { calls: requestId === "req-1" ? [call, refused].slice(0, pageSize) : [] };
      },
      listCalls: ({ pageSize, pageToken }) => {
        asked.push([pageSize, pageToken]);
        return { calls: Array(Math.min(pageSize, 1_000)).fill(call), nextPageToken: "more" };
      },
    });
  };

  it("R-ID-4: show prints the newest record with a request id, exactly these members first", async () => {
    const { json } = await runJson(["calls", "show", "req-1"], { routes });
    expect(Object.entries(json as object).slice(0, 17)).toEqual(
      Object.entries({
        requestId: "req-1",
        accountId,
        keyId,
        model: "demo-chat",
        vendor: "demo",
        status: 200,
        errorCode: null,
        ending: "completed",
        usageSource: "upstream",
        inputTokens: 12,
        cachedInputTokens: 4,
        outputTokens: 30,
        cost: "0.0000621",
        priceVersion: "abc",
        startedAt: time,
        durationMs: 120,
        firstByteMs: 15,
      }),
    );
    expect(asked.splice(0)).toEqual([["req-1", "", 1]]);
  });

  it("R-ID-6: show --all prints the list", async () => {
    const { json } = await runJson(["calls", "show", "req-1", "--all"], { routes });
    expect(json).toMatchObject([
      { status: 200, errorCode: null },
      { status: 402, errorCode: "insufficient_balance", vendor: null },
    ]);
    asked.length = 0;
  });

  it.each([[[]], [["--all"]]])("show %j of an unknown request id fails", async (more) => {
    const ran = await run(["calls", "show", "none", "--json", ...more], { routes });
    expect(ran).toMatchObject({ code: 1, out: "", closed: 1 });
    expect(ran.err).toMatch(/^uas: no call with request id "none": [^\n]*\n$/);
    asked.length = 0;
  });

  it("list stops at its limit, over several pages", async () => {
    const line = ["calls", "list", "--account", accountId, "--limit", "1001"];
    const { json } = await runJson(line, { routes });
    expect(json).toHaveLength(1_001);
    expect(asked.splice(0)).toEqual([
      [1_000, ""],
      [1, "more"],
    ]);
  });
});

describe("R-MON-6: ledger audit", () => {
  const audit = (findings: { rule: string; detail: string }[]) => ({
    routes: (router: ConnectRouter) =>
      void router.service(BillingService, { auditLedger: () => ({ findings }) }),
  });

  it("succeeds where the books are right", async () => {
    const ran = await runJson(["ledger", "audit"], audit([]));
    expect(ran).toMatchObject({ code: 0, json: { ok: true, findings: [] } });
  });

  it("fails and names the broken rules", async () => {
    const world = audit([{ rule: "I1", detail: "account a" }]);
    const ran = await run(["ledger", "audit"], world);
    expect(ran).toMatchObject({ code: 1, out: "RULE  BROKEN BY\nI1    account a\n" });
    expect((await runJson(["ledger", "audit"], world)).json).toEqual({
      ok: false,
      findings: [{ rule: "I1", detail: "account a" }],
    });
  });
});

describe("failures before a service answers", () => {
  it("are one line on standard error", async () => {
    const refusal = new Error("cannot reach PostgreSQL:\n  check DATABASE_URL");
    const ran = await run(["ledger", "audit", "--json"], { refusal });
    expect(ran).toMatchObject({ code: 1, out: "" });
    expect(ran.err).toBe("uas: cannot reach PostgreSQL: check DATABASE_URL\n");
    const refused = new AggregateError([new Error("connect ECONNREFUSED ::1:5432")]);
    const { err } = await run(["ledger", "audit"], { refusal: refused });
    expect(err).toBe("uas: connect ECONNREFUSED ::1:5432\n");
  });

  it("close what was opened", async () => {
    const ran = await run(["ledger", "audit"]);
    expect(ran).toMatchObject({ code: 1, closed: 1 });
    expect(ran.err).toMatch(/^uas: \S[^\n]*\n$/);
  });
});
