import type { ConnectRouter } from "@connectrpc/connect";
import { describe, expect, it } from "vitest";
import { KeyState } from "../../../gen/uas/key/v1/key_pb.ts";
import { KeyService } from "../../../gen/uas/key/v1/key_service_pb.ts";
import { OperatorService } from "../../../gen/uas/operator/v1/operator_service_pb.ts";
import { accountId, createTime, keyId, time, usd } from "./sample.ts";
import { run, runJson } from "./support.ts";

const noRates = { rpm: null, tpm: null, concurrency: null };

describe("key", () => {
  const made: unknown[] = [];
  const changed: [paths: unknown, limitNanos: unknown][] = [];
  const key = { keyId, accountId, name: "n", masked: "uas_abcd…wxyz", models: ["demo-chat"] };
  const routes = (router: ConnectRouter) => {
    router.service(OperatorService, {
      listConfiguredModels: () => ({ models: [{ modelKey: "demo-chat" }, { modelKey: "other" }] }),
    });
    router.service(KeyService, {
      createKey: ({ accountId: account, name, models, spendLimit, expireTime, budgets }) => {
        made.push({ account, name, models });
        return { key: { ...key, spendLimit, expireTime, budgets }, secret: "uas_secret" };
      },
      updateKey: ({ key: wanted, updateMask }) => {
        changed.push([updateMask?.paths, wanted?.spendLimit?.amountNanos]);
        return { key: wanted };
      },
      disableKey: (request) => ({ key: { keyId: request.keyId, state: KeyState.DISABLED } }),
      enableKey: (request) => ({ key: { keyId: request.keyId, state: KeyState.ENABLED } }),
      deleteKey: (request) => ({ key: { keyId: request.keyId, state: KeyState.DELETED } }),
      getKey: () => ({ key: { ...key, rateLimits: { rpm: 5, concurrency: 2 } } }),
      listKeys: () => ({
        keys: [
          {
            ...key,
            state: KeyState.ENABLED,
            createTime,
            lastUseTime: createTime,
            spendLimit: usd(1_500_000_000n),
            spent: usd(250_000_000n),
          },
        ],
      }),
    });
  };

  it("create prints the key once, and warns of a model that is not configured", async () => {
    const line = ["key", "create", "--account", accountId, "--models", "demo-chat, nope"];
    const ran = await runJson(line, { routes });
    expect(ran.json).toEqual({
      keyId,
      key: "uas_secret",
      expiresAt: null,
      limit: null,
      ...noRates,
      budgets: [],
    });
    expect(ran.err).toBe('warning: model "nope" is not configured (there is: demo-chat, other)\n');
    expect(made).toEqual([{ account: accountId, name: "", models: ["demo-chat", "nope"] }]);
  });

  it("R-KEY-4: create takes a limit and an expiry", async () => {
    const limits = ["--limit", "5.00", "--expires", "2127-01-31"];
    const line = ["key", "create", "--account", accountId, ...limits];
    const { json } = await runJson(line, { routes });
    expect(json).toMatchObject({ limit: "5", expiresAt: "2127-01-31T00:00:00.000Z" });
    made.length = 0;
  });

  it.each([
    [["--limit", "0.5"], ["spend_limit"], 500_000_000n],
    [["--limit", "none", "--expires", "never"], ["spend_limit", "expire_time"], undefined],
    [["--models", "all", "--name", ""], ["name", "models"], undefined],
    [["--models", "demo-chat", "--expires", "1d"], ["models", "expire_time"], undefined],
  ])("R-KEY-4: update %j changes that alone", async (options, paths, limitNanos) => {
    const { code, err } = await runJson(["key", "update", keyId, ...options], { routes });
    expect([code, err]).toEqual([0, ""]);
    expect(changed.splice(0)).toEqual([[paths, limitNanos]]);
  });

  it("create and limit take a budget for each period, in one time zone", async () => {
    const options = ["--budget", "1.50/day", "--budget", "10/month", "--zone", "Asia/Shanghai"];
    const budgets = [
      { amount: "1.5", period: "day", zone: "Asia/Shanghai", spent: "0", resetsAt: null },
      { amount: "10", period: "month", zone: "Asia/Shanghai", spent: "0", resetsAt: null },
    ];
    const line = ["key", "create", "--account", accountId, ...options];
    expect((await runJson(line, { routes })).json).toMatchObject({ budgets });
    made.length = 0;
    expect((await runJson(["key", "limit", keyId, ...options], { routes })).json).toMatchObject({
      budgets,
    });
    const none = await runJson(["key", "limit", keyId, "--budget", "none"], { routes });
    expect(none.json).toMatchObject({ budgets: [] });
    expect(changed.splice(0).map(([paths]) => paths)).toEqual([["budgets"], ["budgets"]]);
  });

  it.each([
    [["--budget", "10"], 2, "such as 10.00/month"],
    [["--budget", "10/year"], 2, "such as 10.00/month"],
    [["--budget", "x/day"], 2, "US dollars"],
    [["--zone", "UTC"], 1, "give both"],
    [[], 1, "nothing to change"],
  ])("key create refuses the limit %j", async (options, code, message) => {
    const ran = await run(["key", "limit", keyId, ...options], { routes });
    expect(ran).toMatchObject({ code, out: "" });
    expect(ran.err).toContain(message);
  });

  it("limit changes the rates that are given, and keeps the others", async () => {
    const line = ["key", "limit", keyId, "--tpm", "1000", "--concurrency", "none"];
    const { json } = await runJson(line, { routes });
    expect(json).toMatchObject({ rpm: 5, tpm: 1_000, concurrency: null });
    expect(changed.splice(0)).toEqual([[["rate_limits"], undefined]]);
    const exempt = await run(["key", "limit", keyId, "--rpm", "unlimited", "--json"], { routes });
    expect(JSON.parse(exempt.out)).toMatchObject({ rpm: "unlimited", concurrency: 2 });
    changed.length = 0;
    const refused = await run(["key", "limit", keyId, "--rpm", "0"], { routes });
    expect(refused).toMatchObject({ code: 2 });
    expect(refused.err).toContain("whole number from 1 to 2147483647; see");
  });

  it("update of nothing is refused", async () => {
    const ran = await run(["key", "update", keyId], { routes });
    expect(ran).toMatchObject({ code: 1, out: "" });
    expect(ran.err).toContain("nothing to change");
  });

  it.each([
    ["disable", "disabled"],
    ["enable", "enabled"],
    ["delete", "deleted"],
  ])("key %s changes the status of the key", async (verb, state) => {
    const { json } = await runJson(["key", verb, keyId], { routes });
    expect(json).toEqual({ keyId, state });
  });

  it("key list shows no secret", async () => {
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
        expiresAt: null,
        limit: "1.5",
        spent: "0.25",
        ...noRates,
        budgets: [],
        lastUsedAt: time,
      },
    ]);
  });
});
