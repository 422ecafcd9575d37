/** The operator's view: actions, configuration, health (R-CON-1). */
import { timestampMs } from "@bufbuild/protobuf/wkt";
import { createClient } from "@connectrpc/connect";
import { createConnectTransport, Http2SessionManager } from "@connectrpc/connect-node";
import { Pool } from "pg";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { TopUpSource } from "../../../gen/uas/billing/v1/billing_pb.ts";
import type { AuditEntry } from "../../../gen/uas/operator/v1/operator_pb.ts";
import { OperatorService } from "../../../gen/uas/operator/v1/operator_service_pb.ts";
import { migrations } from "../../../src/db/migrations.ts";
import { money } from "../../../src/core/money.ts";
import { bearer, demoModel, operatorToken, useGateway } from "../../behaviour/rpc/harness.ts";
import { publicModel, startGateway } from "../../support/gateway.ts";

const fixture = useGateway();
let session: Http2SessionManager;
let pool: Pool;
beforeAll(() => {
  session = new Http2SessionManager(fixture.gateway.internalUrl);
  pool = new Pool({ connectionString: fixture.gateway.databaseUrl, max: 1 });
});
afterAll(async () => {
  session.abort();
  await pool.end();
});

function client(baseUrl = fixture.gateway.internalUrl, sessionManager = session) {
  const transport = createConnectTransport({
    baseUrl,
    httpVersion: "2",
    sessionManager,
    interceptors: [
      (next) => (request) => {
        for (const [name, value] of Object.entries(bearer(operatorToken))) {
          request.header.set(name, value);
        }
        return next(request);
      },
    ],
  });
  return createClient(OperatorService, transport);
}

async function entriesOf(accountId: string): Promise<AuditEntry[]> {
  return (await client().listAuditEntries({ accountId })).entries;
}

describe("the audit log", () => {
  test("the audit log has actor, action, both values and reason of each action, newest first, written in its transaction", async () => {
    const { accounts, billing } = fixture.gateway;
    const { account } = await accounts.createAccount({ name: "Acme" });
    const accountId = account?.accountId ?? "";
    await accounts.suspendAccount({ accountId, reason: "unpaid" });
    await accounts.resumeAccount({ accountId });
    await accounts.updateAccount({
      account: { accountId, discountBp: 500, name: "Acme" },
      updateMask: { paths: ["discount_bp", "name"] },
    });
    const topUp = { accountId, amount: money(5_000_000_000n), reference: "r1" };
    await billing.topUp(topUp);
    await billing.topUp(topUp);
    const grant = { ...topUp, reference: "r2", source: TopUpSource.PROMO };
    await billing.topUp(grant);
    const taken = { accountId, amount: money(-1n), reason: "a slip", reference: "r3" };
    await billing.adjustBalance(taken);
    const tooMuch = { ...taken, amount: money(-(10n ** 12n)), reference: "r4" };
    await expect(billing.adjustBalance(tooMuch)).rejects.toThrow();
    const entries = await entriesOf(accountId);
    expect(entries.map(({ action, reason }) => [action, reason]).toReversed()).toEqual([
      ["account.create", ""],
      ["account.suspend", "unpaid"],
      ["account.resume", ""],
      ["account.update", ""],
      ["money.top_up", ""],
      ["money.grant", ""],
      ["money.adjust", "a slip"],
    ]);
    expect(entries.every(({ actor }) => actor === "command line")).toBe(true);
    expect(entries.every(({ requestId }) => requestId !== "")).toBe(true);
    const [adjusted, , , updated, resumed] = entries;
    expect(adjusted?.after).toEqual({ amount: "-0.000000001", reference: "r3" });
    expect([updated?.before, updated?.after]).toEqual([{ discountBp: 0 }, { discountBp: 500 }]);
    expect(resumed?.before).toEqual({ state: 2, suspendReason: "unpaid" });
    const narrowed = await client().listAuditEntries({ accountId, action: "money", pageSize: 2 });
    expect(narrowed.entries.map(({ action }) => action)).toEqual(["money.adjust", "money.grant"]);
    const { nextPageToken: pageToken } = narrowed;
    const rest = await client().listAuditEntries({ accountId, action: "money", pageToken });
    expect(rest.entries.map(({ action }) => action)).toEqual(["money.top_up"]);
    const before = await client().listAuditEntries({
      accountId,
      toTime: entries.at(-1)?.createTime,
    });
    expect(before.entries).toEqual([]);
  });

  test("the audit log cannot be changed, and has no actions of customers", async () => {
    const { accountId } = fixture.customer;
    for (const change of [
      "update audit_entry set actor = ''",
      "delete from audit_entry",
      "truncate audit_entry",
    ]) {
      await expect(pool.query(change)).rejects.toThrow(/append-only/);
    }
    const actions = (await entriesOf(accountId)).map(({ action }) => action);
    expect(actions.toSorted()).toEqual(["account.create", "key.create", "money.top_up"]);
  });
});

describe("the vendors", () => {
  test("the vendors are shown with their models and health, without their credentials", async () => {
    const { gateway, upstream, customer } = fixture;
    const headers = { ...bearer(customer.key), "content-type": "application/json" };
    const body = JSON.stringify({ model: publicModel, messages: [{ role: "user", content: "x" }] });
    await fetch(`${gateway.url}/v1/chat/completions`, {
      method: "POST",
      headers: { ...headers, "x-request-id": "seen" },
      body,
    }).then((reply) => reply.text());
    await gateway.call("seen");
    const answer = await client().listVendors({});
    expect(answer.vendors.map(({ vendor }) => vendor)).toEqual(["demo", "sim"]);
    const [, sim] = answer.vendors;
    expect(sim).toMatchObject({
      kind: "openai-compatible",
      baseUrl: upstream.baseUrl,
      hasCredential: true,
      models: [publicModel],
      inFlight: 0,
      failure: "",
      recent: { callCount: 1, failedCount: 0 },
    });
    expect(sim?.successTime && timestampMs(sim.successTime)).toBeGreaterThan(Date.now() - 60_000);
    const text = JSON.stringify(answer, (_name, value: unknown) =>
      typeof value === "bigint" ? value.toString() : value,
    );
    expect(text).not.toContain(upstream.secret);
  });

  test("the vendors are shown with their last failure, without the vendor's own text (R-ERR-3)", async () => {
    const settings = { operatorToken };
    const down = await startGateway({
      vendors: { down: { baseUrl: "http://127.0.0.1:9" } },
      settings,
    });
    const manager = new Http2SessionManager(down.internalUrl);
    const own = client(down.internalUrl, manager);
    const tested = await own.testVendor({ vendor: "down" });
    expect([tested.ok, tested.text]).toEqual([false, ""]);
    expect(tested.error).not.toBe("");
    expect((await own.listVendors({})).vendors).toMatchObject([{ failure: "connect" }]);
    manager.abort();
    await down.close();
  });

  test("the vendors are shown with the models that ignore the output limit of a request (R-MON-12)", async () => {
    const callId = "01900000-0000-7000-8000-000000000001";
    await pool.query(
      "insert into unlimited_route (vendor, model, call_id, limit_tokens, output_tokens) values ($1, $2, $3, $4, $5)",
      ["sim", "vendor-model", callId, 1, 4_096],
    );
    const { vendors } = await client().listVendors({});
    await pool.query("delete from unlimited_route");
    expect(vendors.map(({ unlimitedModels }) => unlimitedModels)).toMatchObject([
      [],
      [{ model: "vendor-model", callId, limitTokens: 1n, outputTokens: 4_096n }],
    ]);
  });

  test("the vendors are no longer marked once an operator clears the mark, which is in the audit log", async () => {
    const callId = "01900000-0000-7000-8000-000000000001";
    await pool.query(
      "insert into unlimited_route (vendor, model, call_id, limit_tokens, output_tokens) values ($1, $2, $3, $4, $5)",
      ["sim", "vendor-model", callId, 1, 4_096],
    );
    const mark = { vendor: "sim", model: "vendor-model" };
    await client().clearUnlimitedModel(mark);
    const { vendors } = await client().listVendors({});
    expect(vendors.flatMap(({ unlimitedModels }) => unlimitedModels)).toEqual([]);
    const { entries } = await client().listAuditEntries({ pageSize: 1 });
    expect(entries).toMatchObject([{ action: "vendor.clear-unlimited", subject: "sim" }]);
    await expect(client().clearUnlimitedModel(mark)).rejects.toThrow(/is not marked/);
  });

  test("answer a test, which is not charged, and a failed test names the error", async () => {
    const tested = await client().testVendor({ vendor: "demo" });
    expect(tested).toMatchObject({ ok: true, modelKey: demoModel, error: "" });
    expect(tested.text).not.toBe("");
    await expect(client().testVendor({ vendor: "nobody" })).rejects.toThrow(/no model has a route/);
    const wrong = client().testVendor({ vendor: "demo", modelKey: publicModel });
    await expect(wrong).rejects.toThrow(/only TEXT models can be tested/);
    const { rows } = await pool.query("select from call where vendor = 'demo'");
    expect(rows).toEqual([]);
  });
});

describe("the installation", () => {
  test("the installation lists its configured models, page by page", async () => {
    const first = await client().listConfiguredModels({ pageSize: 1 });
    const { nextPageToken: pageToken } = first;
    const second = await client().listConfiguredModels({ pageSize: 1, pageToken });
    expect([...first.models, ...second.models]).toMatchObject([
      {
        modelKey: demoModel,
        type: "TEXT",
        routes: [{ vendor: "demo", model: "instant", weight: 1, priority: 0, maxContextTokens: 0 }],
        fallbackModels: [],
        deadline: { seconds: 1_800n },
      },
      { modelKey: publicModel, routes: [{ vendor: "sim", model: "vendor-model" }] },
    ]);
    expect([first.source, second.nextPageToken]).toEqual(["test", ""]);
  });

  test("the installation shows its versions, processes and queues", async () => {
    const info = await client().getSystemInfo({});
    expect(info.version).toMatch(/^\d+\.\d+\.\d+/);
    expect(info.databaseVersion).toMatch(/^\d+/);
    expect(info.databaseBytes).toBeGreaterThan(1_000_000n);
    expect(info.migrations.map(({ name }) => name)).toEqual(migrations.map(({ name }) => name));
    expect(info.processes).toMatchObject([{ ended: false }]);
    expect(info.queues).toMatchObject([{ queue: "holds", state: "open", count: 0n }]);
  });
});
