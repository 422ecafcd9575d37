import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from "vitest";
import {
  DeliveryState,
  EndpointState,
  WebhookStatus,
} from "../../../gen/uas/webhook/v1/webhook_pb.ts";
import { type Caller, operator } from "../../../src/core/caller.ts";
import { ErrorCode } from "../../../src/core/errors.ts";
import { enqueueWebhook } from "../../../src/webhook/enqueue.ts";
import { createWebhookJobs } from "../../../src/webhook/jobs.ts";
import { eventOf, inTransaction, openWebhooks, type Webhooks } from "./harness.ts";
import { accountId, as, codeOf, otherAccount, type WebhookClient } from "./rpc.ts";
import { newId } from "../../../src/core/uuid.ts";

const url = "https://a.example/hook";
let webhooks: Webhooks;
let rpc: WebhookClient;

beforeAll(async () => {
  webhooks = await openWebhooks();
  rpc = as(webhooks, operator);
});
afterAll(async () => {
  await webhooks.stopAll();
  await webhooks.close();
});

describe("deliveries", () => {
  it("deliveries are listed by every filter, page by page, and shown with body and attempts", async () => {
    const { client } = webhooks.fake((target) => (target.includes("good") ? 204 : 500));
    const running = await webhooks.dispatch({ client });
    const taskId = newId();
    const good = await webhooks.enqueue({
      url: "https://good.example/x",
      accountId,
      callbackId: "é 1",
    });
    const bad = await webhooks.enqueue({ url, accountId, taskId });
    await webhooks.enqueue({ url, accountId: otherAccount });
    await running.ended(3);
    await webhooks.stopAll();
    const list = async (filter: object) =>
      (await rpc.listDeliveries({ accountId, ...filter })).deliveries.map(
        ({ deliveryId }) => deliveryId,
      );
    expect(await list({})).toEqual([bad, good]);
    expect(await list({ state: DeliveryState.DELIVERED })).toEqual([good]);
    expect(await list({ state: DeliveryState.PENDING })).toEqual([bad]);
    expect(await list({ state: DeliveryState.PARKED })).toEqual([]);
    expect(await list({ taskId })).toEqual([bad]);
    expect(await list({ callbackId: "é 1" })).toEqual([good]);
    expect(await list({ origin: "https://good.example" })).toEqual([good]);
    expect(await list({ origin: "https://good.example", callbackId: "x" })).toEqual([]);
    const first = await rpc.listDeliveries({ accountId, pageSize: 1 });
    const second = await rpc.listDeliveries({
      accountId,
      pageSize: 1,
      pageToken: first.nextPageToken,
    });
    expect([...first.deliveries, ...second.deliveries].map((each) => each.deliveryId)).toEqual([
      bad,
      good,
    ]);
    expect(second.nextPageToken).toBe("");
    const shown = await rpc.getDelivery({ deliveryId: bad ?? "" });
    expect(shown.delivery).toMatchObject({
      accountId,
      taskId,
      attemptCount: 1,
      status: WebhookStatus.COMPLETED,
      sequence: 1,
    });
    expect(shown.delivery?.nextAttemptTime).toBeDefined();
    expect(JSON.parse(shown.body)).toMatchObject({
      status: "completed",
      external_data: { task_id: taskId },
    });
    expect(shown.attempts).toMatchObject([{ number: 1, status: 500 }]);
  });

  it("R-HOOK-6: deliveries are resent: one at once, all failed ones, progress never", async () => {
    const failed = await webhooks.enqueue({ url, accountId, callbackId: "again" });
    const early = await webhooks.enqueue({
      url,
      accountId,
      time: new Date("2026-01-01T00:00:00Z"),
    });
    const progress = await webhooks.enqueue({ url, accountId, status: "progress" });
    await webhooks.pool.query(
      "update webhook_delivery set state = 4, series = 14, attempts = 14, end_time = now() where id = any($1)",
      [[failed, early, progress]],
    );
    const since = timestampFromDate(new Date("2026-11-01T00:00:00Z"));
    const elsewhere = await rpc.resendFailed({ accountId, since, origin: "https://other.example" });
    expect(elsewhere.deliveryCount).toBe(0);
    expect((await rpc.resendFailed({ accountId, since })).deliveryCount).toBe(1);
    expect(await webhooks.stored(failed)).toMatchObject({ state: 1, series: 0, attempts: 14 });
    expect(await webhooks.stored(early)).toMatchObject({ state: 4 });
    expect(await codeOf(rpc.resendDelivery({ deliveryId: progress ?? "" }))).toBe(
      ErrorCode.INVALID_REQUEST,
    );
    const { delivery } = await rpc.resendDelivery({ deliveryId: early ?? "" });
    expect(delivery).toMatchObject({ state: DeliveryState.PENDING });
    expect(delivery?.endTime).toBeUndefined();
  });

  it("tests are sent with each payload, marked, once", async () => {
    const { client } = webhooks.fake(() => 204);
    const running = await webhooks.dispatch({ client });
    const { finished } = running;
    const already = finished.length;
    for (const [index, word] of ["progress", "completed", "failed", "cancelled"].entries()) {
      const status = (index + 1) as WebhookStatus;
      const { delivery } = await rpc.sendTestEvent({
        accountId,
        url: "https://t.example/",
        status,
      });
      expect(delivery).toMatchObject({ isTest: true, status });
      const { body } = await rpc.getDelivery({ deliveryId: delivery?.deliveryId ?? "" });
      expect(JSON.parse(body)).toMatchObject({ status: word, external_data: { test: true } });
    }
    await running.ended(already + 4);
    for (const bad of ["http://t.example/", "https://127.0.0.1/", "x", ""]) {
      expect(await codeOf(rpc.sendTestEvent({ accountId, url: bad }))).toBe(
        ErrorCode.INVALID_REQUEST,
      );
    }
    await webhooks.stopAll();
  });

  it("the id of a delivery begins with the database's time, whatever the clock of the process says", async () => {
    const hourMs = 3_600_000;
    const id = await inTransaction(webhooks.pool, async (client) => {
      const ahead = [
        "create schema ahead",
        "create function ahead.now() returns timestamptz language sql as $$ select pg_catalog.now() + interval '1 hour' $$",
        "set local search_path = ahead, public, pg_catalog",
      ];
      for (const statement of ahead) await client.query(statement, []);
      return enqueueWebhook(client, eventOf({ url, accountId }));
    });
    const timeMs = Number.parseInt(id?.replace("-", "").slice(0, 12) ?? "", 16);
    expect(Math.abs(timeMs - hourMs - Date.now())).toBeLessThan(60_000);
    await webhooks.pool.query("delete from webhook_delivery where id = $1", [id]);
    await webhooks.pool.query("delete from webhook_event where id = $1", [id]);
  });

  it("deliveries of 30 days ago are deleted, with their attempts; newer ones stay", async () => {
    const jobs = createWebhookJobs({ pool: webhooks.pool });
    const [old, young] = [
      await webhooks.enqueue({ url, accountId }),
      await webhooks.enqueue({ url, accountId }),
    ];
    const oldId = "01800000-0000-7000-8000-000000000001";
    for (const table of ["webhook_event", "webhook_delivery"]) {
      await webhooks.pool.query(`update ${table} set id = $2 where id = $1`, [old, oldId]);
    }
    // An id says little: the database's clock may have been wrong then. And what is to be sent
    // stays.
    expect(await jobs.expire()).toBe(0);
    await webhooks.pool.query(
      "update webhook_event set create_time = now() - interval '31 days' where id = $1",
      [oldId],
    );
    expect(await jobs.expire()).toBe(0);
    const { pending } = await jobs.count();
    await webhooks.pool.query(
      "update webhook_delivery set state = 4, end_time = now() where id = $1",
      [oldId],
    );
    await webhooks.pool.query(
      `insert into webhook_attempt values ($1, now(), 1, 200, 0, 0, 0, 0, 0, 1, 1, '')`,
      [oldId],
    );
    expect(await jobs.expire()).toBe(1);
    expect((await jobs.count()).pending).toBe(pending - 1);
    const { rows } = await webhooks.pool.query(
      "select from webhook_attempt where delivery_id = $1",
      [oldId],
    );
    expect(rows).toEqual([]);
    expect((await webhooks.stored(young)).state).toBe(1);
  });

  it("a process whose clock is 400 days ahead deletes no delivery", async () => {
    const ended = await webhooks.enqueue({ url, accountId });
    const end = "update webhook_delivery set state = 3, end_time = now() where id = $1";
    await webhooks.pool.query(end, [ended]);
    vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + 400 * 86_400_000 });
    onTestFinished(() => void vi.useRealTimers());
    expect(await createWebhookJobs({ pool: webhooks.pool }).expire()).toBe(0);
    expect((await webhooks.stored(ended)).state).toBe(3);
  });

  it("a delivery of 30 days ago that waits is kept, unless its receiver is dead", async () => {
    const jobs = createWebhookJobs({ pool: webhooks.pool });
    const dead = { url: "https://gone.example/", accountId };
    const [waits, parked] = [
      await webhooks.enqueue({ url, accountId }),
      await webhooks.enqueue(dead),
    ];
    await webhooks.pool.query(
      `insert into webhook_endpoint (id, account_id, origin, failing_since, dead_time)
       select endpoint_id, account_id, 'https://gone.example', now(), now() from webhook_delivery where id = $1`,
      [parked],
    );
    const [first, second] = [1, 2].map((n) => `01800000-0000-7000-8000-00000000001${n}`);
    for (const [id, oldId] of [
      [waits, first],
      [parked, second],
    ]) {
      const set = "update webhook_event set id = $2, create_time = now() - interval '31 days'";
      await webhooks.pool.query(`${set} where id = $1`, [id, oldId]);
      await webhooks.pool.query("update webhook_delivery set id = $2 where id = $1", [id, oldId]);
    }
    expect(await jobs.expire()).toBe(1);
    expect((await webhooks.stored(first)).state).toBe(1);
  });
});

describe("receivers", () => {
  it("receivers are listed with their state, and re-enabled: their parked deliveries are sent", async () => {
    const id = await webhooks.enqueue({ url: "https://dead.example/1", accountId });
    await webhooks.pool.query(
      `insert into webhook_endpoint (id, account_id, origin, failures, failing_since, open_until, dead_time)
       select endpoint_id, account_id, 'https://dead.example', 99, now(), now(), now()
       from webhook_delivery where id = $1`,
      [id],
    );
    const { endpoints } = await rpc.listEndpoints({ accountId });
    const dead = endpoints.find(({ origin }) => origin === "https://dead.example");
    expect(dead).toMatchObject({ state: EndpointState.DEAD, failureCount: 99, waitingCount: 1 });
    const parked = await rpc.listDeliveries({ accountId, state: DeliveryState.PARKED });
    expect(parked.deliveries.map(({ deliveryId }) => deliveryId)).toEqual([id]);
    expect(parked.deliveries[0]?.nextAttemptTime).toBeUndefined();
    const running = await webhooks.dispatch({ client: webhooks.fake(() => 204).client });
    const { endpoint } = await rpc.reenableEndpoint({ accountId, origin: "https://dead.example/" });
    expect(endpoint).toMatchObject({ state: EndpointState.HEALTHY, failureCount: 0 });
    for (let count = 1; (await webhooks.stored(id)).state !== 3; count++)
      await running.ended(count);
    expect(await codeOf(rpc.reenableEndpoint({ accountId, origin: "https://never.example" }))).toBe(
      ErrorCode.NOT_FOUND,
    );
  });
});

describe("the audit log", () => {
  it("R-CON-1: the audit log has operators' actions on webhooks, and not customers' own", async () => {
    const { pool } = webhooks;
    const before = newId();
    const id = (await webhooks.enqueue({ url: "https://noted.example/1", accountId })) ?? "";
    await pool.query(
      `insert into webhook_endpoint (id, account_id, origin)
       select endpoint_id, account_id, 'https://noted.example' from webhook_delivery where id = $1
       on conflict do nothing`,
      [id],
    );
    const since = timestampFromDate(new Date("2026-11-01T00:00:00Z"));
    for (const client of [as(webhooks, { kind: "session", accountId }), rpc]) {
      await client.resendDelivery({ deliveryId: id });
      await client.resendFailed({ accountId, since, origin: "https://noted.example" });
      await client.sendTestEvent({ accountId, url: "https://noted.example/2" });
      await client.reenableEndpoint({ accountId, origin: "https://noted.example" });
      // A refused request has no effect.
      await codeOf(client.reenableEndpoint({ accountId, origin: "https://unknown.example" }));
    }
    const { rows } = await pool.query<{ action: string; account_id: string; after: unknown }>(
      "select action, account_id, after from audit_entry where id > $1 order by id",
      [before],
    );
    expect(rows.map(({ action }) => action)).toEqual([
      "webhook.resend",
      "webhook.resend_failed",
      "webhook.test",
      "webhook.enable",
    ]);
    expect(new Set(rows.map((row) => row.account_id))).toEqual(new Set([accountId]));
    expect(rows[1]?.after).toMatchObject({ deliveryCount: 0, origin: "https://noted.example" });
  });
});

describe("access", () => {
  it("a session reaches its own account, and everything else is not found", async () => {
    const mine = as(webhooks, { kind: "session", accountId });
    const id = (await webhooks.enqueue({ url, accountId })) ?? "";
    expect(await codeOf(mine.getDelivery({ deliveryId: id }))).toBeUndefined();
    expect(await codeOf(mine.getSecret({ accountId }))).toBeUndefined();
    const foreign: readonly Caller[] = [
      { kind: "session", accountId: otherAccount },
      { kind: "anonymous" },
    ];
    for (const caller of foreign) {
      const client = as(webhooks, caller);
      const since = timestampFromDate(new Date());
      const calls = [
        client.getSecret({ accountId }),
        client.rotateSecret({ accountId }),
        client.promoteSecret({ accountId }),
        client.listDeliveries({ accountId }),
        client.getDelivery({ deliveryId: id }),
        client.resendDelivery({ deliveryId: id }),
        client.resendFailed({ accountId, since }),
        client.sendTestEvent({ accountId, url }),
        client.listEndpoints({ accountId }),
        client.reenableEndpoint({ accountId, origin: "https://a.example" }),
      ];
      expect(new Set(await Promise.all(calls.map(codeOf)))).toEqual(new Set([ErrorCode.NOT_FOUND]));
    }
  });

  it("R-ERR-7: bad input is refused with its reason, never 5xx", async () => {
    for (const id of ["", "x", "\0", accountId.toUpperCase(), newId()]) {
      expect(await codeOf(rpc.getSecret({ accountId: id }))).toBe(ErrorCode.NOT_FOUND);
      expect(await codeOf(rpc.getDelivery({ deliveryId: id }))).toBe(ErrorCode.NOT_FOUND);
    }
    const bad = [
      { pageSize: -1 },
      { pageToken: "x" },
      { taskId: "x" },
      { callbackId: "a\0" },
      { origin: "a.example" },
      { origin: "https://a.example/path" },
      { state: 99 as DeliveryState },
    ];
    for (const filter of bad) {
      const call = rpc.listDeliveries({ accountId, ...(filter as object) });
      expect(await codeOf(call), JSON.stringify(filter)).toBe(ErrorCode.INVALID_REQUEST);
    }
    expect(await codeOf(rpc.resendFailed({ accountId }))).toBe(ErrorCode.INVALID_REQUEST);
    expect(await codeOf(rpc.sendTestEvent({ accountId, url, status: 99 as WebhookStatus }))).toBe(
      ErrorCode.INVALID_REQUEST,
    );
  });
});
