import { createHmac } from "node:crypto";
import { Webhook } from "standardwebhooks";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { AttemptOutcome } from "../../../gen/uas/webhook/v1/webhook_pb.ts";
import { enqueueWebhook } from "../../../src/webhook/enqueue.ts";
import { ok, type Receiver, startReceiver } from "../../support/receiver.ts";
import { eventOf, inTransaction, openWebhooks, type Webhooks } from "./harness.ts";
import { newId } from "../../../src/core/uuid.ts";

const [PENDING, DELIVERED, FAILED] = [1, 3, 4];

let webhooks: Webhooks;
let receiver: Receiver;

beforeAll(async () => {
  webhooks = await openWebhooks();
  receiver = await startReceiver();
});
afterEach(async () => {
  await webhooks.stopAll();
  // Removes the deliveries of earlier tests.
  await webhooks.pool.query(
    "truncate webhook_event, webhook_delivery, webhook_attempt, webhook_endpoint",
  );
  receiver.behave(ok);
});
afterAll(async () => {
  await receiver.close();
  await webhooks.close();
});

describe("a delivery", () => {
  it("R-HOOK-1, R-HOOK-2: arrives with its stored bytes, signed in both ways", async () => {
    const { ended } = await webhooks.dispatch();
    const accountId = newId();
    const before = receiver.received.length;
    const id = await webhooks.enqueue({ url: `${receiver.origin}/hook?a=b`, accountId });
    const [finished] = await ended(1);
    const got = receiver.received[before];
    const { current } = await webhooks.secrets.get(accountId);
    expect(got?.path).toBe("/hook?a=b");
    expect(got?.headers["content-type"]).toBe("application/json");
    const { rows } = await webhooks.pool.query<{ body: Buffer }>(
      "select body from webhook_event where id = $1",
      [id],
    );
    expect(got?.body).toEqual(rows[0]?.body);
    const hex = createHmac("sha256", current)
      .update(JSON.stringify(JSON.parse(String(got?.body))))
      .digest("hex");
    expect(got?.headers["x-ai-service-signature"]).toBe(hex);
    const verified = new Webhook(current).verify(
      String(got?.body),
      got?.headers as Record<string, string>,
    );
    expect(verified).toMatchObject({
      callback_id: "callback",
      status: "completed",
      timestamp: "2026-11-21T09:30:00.000Z",
      external_data: { event_id: id, model_key: "model", request_id: "request", sequence: 1 },
    });
    expect(finished).toMatchObject({
      accountId,
      origin: receiver.origin,
      verdict: { state: "delivered" },
    });
    expect(await webhooks.stored(id)).toMatchObject({
      state: DELIVERED,
      attempts: 1,
      outcomes: [AttemptOutcome.DELIVERED],
    });
  });

  it("R-TSK-6: a delivery is enqueued only if its transaction commits", async () => {
    const { ended, finished } = await webhooks.dispatch();
    const failing = inTransaction(webhooks.pool, async (client) => {
      await enqueueWebhook(client, eventOf({ url: receiver.origin }));
      throw new Error("rolled back");
    });
    await expect(failing).rejects.toThrow("rolled back");
    await webhooks.enqueue({ url: receiver.origin });
    await ended(1);
    expect(finished).toHaveLength(1);
    const { rows } = await webhooks.pool.query("select from webhook_event");
    expect(rows).toHaveLength(1);
  });

  it("a delivery carries texts of any form as they are", async () => {
    const { ended } = await webhooks.dispatch();
    const callbackId = "o'b\\r?ien $1 :x";
    const id = await webhooks.enqueue({ url: receiver.origin, callbackId, resultContent: "é'?" });
    await ended(1);
    const body = JSON.parse(String(receiver.received.at(-1)?.body)) as Record<string, unknown>;
    expect(body).toMatchObject({ callback_id: callbackId, result_content: "é'?" });
    expect(await webhooks.stored(id)).toMatchObject({ state: DELIVERED });
  });

  it("R-HOOK-3: a delivery sends the same bytes in every attempt, and keeps the answers", async () => {
    receiver.behave((_received, response) => void response.writeHead(500).end("x".repeat(5_000)));
    const { ended } = await webhooks.dispatch();
    const before = receiver.received.length;
    const id = await webhooks.enqueue({ url: receiver.origin });
    await ended(1);
    const failed = await webhooks.stored(id);
    expect(failed).toMatchObject({
      state: PENDING,
      attempts: 1,
      outcomes: [AttemptOutcome.SERVER_ERROR],
    });
    expect(failed.dueIn).toBeGreaterThan(3);
    expect(failed.dueIn).toBeLessThanOrEqual(5);
    receiver.behave(ok);
    await webhooks.age(id);
    await ended(2);
    expect((await webhooks.stored(id)).state).toBe(DELIVERED);
    const [first, second] = receiver.received.slice(before);
    expect(second?.body).toEqual(first?.body);
    expect(second?.headers["webhook-id"]).toBe(first?.headers["webhook-id"]);
    const { rows } = await webhooks.pool.query<{ answer: Buffer }>(
      "select * from webhook_attempt where delivery_id = $1 order by number",
      [id],
    );
    expect(rows[0]).toMatchObject({
      status: 500,
      address_class: 3,
      answer: Buffer.from("x".repeat(2_048)),
    });
  });

  it.each([
    [302, AttemptOutcome.REDIRECTED, PENDING],
    [404, AttemptOutcome.REFUSED, PENDING],
    [410, AttemptOutcome.GONE, FAILED],
    [429, AttemptOutcome.REFUSED, PENDING],
  ])("status %i is outcome %i and state %i", async (status, outcome, state) => {
    receiver.behave((_received, response) => {
      response.writeHead(status, { location: "/", "retry-after": "90" }).end();
    });
    const { ended } = await webhooks.dispatch();
    const id = await webhooks.enqueue({ url: receiver.origin });
    await ended(1);
    const after = await webhooks.stored(id);
    expect(after).toMatchObject({ state, outcomes: [outcome] });
    if (state === PENDING) expect(Math.round(after.dueIn)).toBe(90);
  });

  it("R-HOOK-3: the 14th failure is the last", async () => {
    const { client } = webhooks.fake(() => 500);
    const { ended } = await webhooks.dispatch({ client });
    const id = await webhooks.enqueue({ url: "https://a.example/" });
    await ended(1);
    await webhooks.pool.query(
      `with closed as (update webhook_endpoint set failures = 0, open_until = null)
       update webhook_delivery set series = 13, due = now() where id = $1`,
      [id],
    );
    await ended(2);
    expect(await webhooks.stored(id)).toMatchObject({ state: FAILED, series: 14 });
  });

  it("R-HOOK-5: an address that is not public is never sent to", async () => {
    const { ended } = await webhooks.dispatch();
    const id = await webhooks.enqueue({ url: `https://127.0.0.1:${receiver.port}/` });
    await ended(1);
    expect((await webhooks.stored(id)).outcomes).toEqual([AttemptOutcome.BLOCKED_ADDRESS]);
  });
});
