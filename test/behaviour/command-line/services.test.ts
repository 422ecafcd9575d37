import { durationFromMs } from "@bufbuild/protobuf/wkt";
import type { ConnectRouter } from "@connectrpc/connect";
import { describe, expect, it } from "vitest";
import { AccountService } from "../../../gen/uas/account/v1/account_service_pb.ts";
import { CallEnding } from "../../../gen/uas/billing/v1/call_pb.ts";
import {
  type AuditLedgerRequest,
  BillingService,
} from "../../../gen/uas/billing/v1/billing_service_pb.ts";
import { CallService } from "../../../gen/uas/billing/v1/call_service_pb.ts";
import { ErrorCode } from "../../../gen/uas/error/v1/error_pb.ts";
import { UsageSource } from "../../../gen/uas/type/v1/usage_pb.ts";
import { accountId, createTime, keyId, time, usd } from "./sample.ts";
import { run, runJson } from "./support.ts";

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
    duration: durationFromMs(120),
    firstContentDuration: durationFromMs(15),
    stream: true,
    path: "/v1/chat/completions",
  };
  const refused = { ...call, status: 402, errorCode: ErrorCode.INSUFFICIENT_BALANCE, vendor: "" };
  const asked: unknown[] = [];
  const routes = (router: ConnectRouter) => {
    router.service(AccountService, { getAccount: () => ({ account: { accountId } }) });
    router.service(CallService, {
      getCall: ({ call: { value: callId = "" } }) => ({
        receipt: { call: { ...call, callId }, charged: true },
      }),
      listCalls: ({ filter, accountId: account, pageSize, pageToken }) => {
        const requestId = filter?.requestId ?? "";
        if (requestId !== "") {
          asked.push([requestId, account, pageSize]);
          return { calls: requestId === "req-1" ? [call, refused].slice(0, pageSize) : [] };
        }
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

  it("the audit succeeds where the ledger is right", async () => {
    const ran = await runJson(["ledger", "audit"], audit([]));
    expect(ran).toMatchObject({ code: 0, json: { ok: true, findings: [] } });
  });

  it("the audit exits with 1 and names the broken rules", async () => {
    const world = audit([{ rule: "I1", detail: "account a" }]);
    const ran = await run(["ledger", "audit"], world);
    expect(ran).toMatchObject({ code: 1, out: "RULE  BROKEN BY\nI1    account a\n" });
    expect((await runJson(["ledger", "audit"], world)).json).toEqual({
      checkpoint: null,
      complete: false,
      ok: false,
      findings: [{ rule: "I1", detail: "account a" }],
    });
  });
});

describe("R-MON-14: ledger audit --expect", () => {
  const hash = "0a".repeat(32);
  const asked: AuditLedgerRequest[] = [];
  const checkpoint = { number: 12n, hash, entries: 3n };
  const routes = (router: ConnectRouter) =>
    void router.service(BillingService, {
      auditLedger: (request) => {
        asked.push(request);
        return { checkpoint, complete: true };
      },
    });

  it("asks for the checkpoint that was noted, and prints the newest one in the same form", async () => {
    const ran = await run(["ledger", "audit", "--expect", `12:${hash}`], { routes });
    expect(ran).toMatchObject({
      code: 0,
      out: expect.stringContaining(`checkpoint 12:${hash} of`) as string,
    });
    expect(asked.map(({ expect: noted }) => noted)).toMatchObject([{ number: 12n, hash }]);
  });

  it.each(["12", `0:${hash}`, `12:${hash.slice(1)}`, `12:${hash.toUpperCase()}`])(
    "refuses %s, which is not a checkpoint",
    async (text) => {
      const ran = await run(["ledger", "audit", "--expect", text], { routes });
      expect(ran).toMatchObject({ code: 2 });
    },
  );
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

  it("a failure before a service answers closes what was opened", async () => {
    const ran = await run(["ledger", "audit"]);
    expect(ran).toMatchObject({ code: 1, closed: 1 });
    expect(ran.err).toMatch(/^uas: \S[^\n]*\n$/);
  });
});
