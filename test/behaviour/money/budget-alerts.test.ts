/**
 * An account is notified of its budgets and its balance by signed webhooks, which are in the
 * delivery log.
 */
import { createClient } from "@connectrpc/connect";
import { Client } from "pg";
import { afterAll, beforeAll, expect, it } from "vitest";
import { BudgetPeriod } from "../../../gen/uas/type/v1/budget_pb.ts";
import { DeliveryState, WebhookStatus } from "../../../gen/uas/webhook/v1/webhook_pb.ts";
import { WebhookService } from "../../../gen/uas/webhook/v1/webhook_service_pb.ts";
import { signatureHeaders } from "../../../src/webhook/signature.ts";
import { caFile, type Receiver, startReceiver } from "../../support/receiver.ts";
import { ask, useGateway } from "../harness.ts";

const fixture = useGateway(() => ({ webhooks: { allowHosts: ["localhost"], caFile } }));
let receiver: Receiver;
beforeAll(async () => {
  receiver = await startReceiver();
});
afterAll(() => receiver.close());

it("a call that takes a key over a threshold and the account below its alert sends one webhook for each", async () => {
  const { gateway } = fixture;
  const { accountId, key, keyId } = await gateway.customer();
  const authorization = { authorization: `Bearer ${key}` };
  const usd = (amountNanos: bigint) => ({ currencyCode: "USD", amountNanos });
  const budgets = [{ period: BudgetPeriod.DAY, amount: usd(2_000_000_000n) }];
  await gateway.keys.updateKey({ key: { keyId, budgets }, updateMask: { paths: ["budgets"] } });
  const client = new Client({ connectionString: gateway.databaseUrl });
  await client.connect();
  await client.query(
    "update budget set carried = carried + amount / 2 - 1 - spent, spent = amount / 2 - 1 where owner_id = $1",
    [keyId],
  );
  await client.end();
  const { balance } = await gateway.money(accountId);
  await gateway.accounts.updateAccount({
    account: {
      accountId,
      alertUrl: `${receiver.origin}/alerts`,
      lowBalanceThreshold: usd(balance),
    },
    updateMask: { paths: ["alert_url", "low_balance_threshold"] },
  });
  expect((await fixture.chat(ask, authorization)).status).toBe(200);
  const received = await receiver.arrived(2);
  const bodies = received.map(({ body }) => JSON.parse(body.toString()) as Record<string, never>);
  const webhooks = createClient(WebhookService, gateway.app.transport);
  const { secret } = await webhooks.getSecret({ accountId });
  for (const { headers, body } of received) {
    const signed = signatureHeaders(
      {
        eventId: String(headers["webhook-id"]),
        body,
        time: new Date(Number(headers["webhook-timestamp"]) * 1_000),
      },
      { current: secret?.current ?? "", other: undefined },
    );
    expect(headers).toMatchObject({
      "webhook-signature": signed["webhook-signature"],
      "x-ai-service-signature": signed["x-ai-service-signature"],
    });
  }
  const budget = bodies.find(({ type }) => type === "budget.threshold");
  expect(budget?.["data"]).toMatchObject({
    account_id: accountId,
    owner: "key",
    key_id: keyId,
    threshold_percent: 50,
    period: "day",
    event_id: expect.any(String),
  });
  expect(bodies.find(({ type }) => type === "balance.low")?.["data"]).toMatchObject({
    account_id: accountId,
  });
  await expect
    .poll(async () => (await webhooks.listDeliveries({ accountId })).deliveries)
    .toMatchObject([
      { status: WebhookStatus.ALERT, state: DeliveryState.DELIVERED },
      { status: WebhookStatus.ALERT, state: DeliveryState.DELIVERED },
    ]);
});

it.each([
  [{ alertUrl: "http://hooks.example.com" }, "alert_url", "must begin with https://"],
  [{ alertUrl: "https://10.0.0.1/x" }, "alert_url", "must have a public address"],
  [{ alertEmails: ["a@b"] }, "alert_emails", undefined],
  [{ alertEmails: ["a@b.c\r\nBcc: x@y.z"] }, "alert_emails", "name@example.com"],
  [{ alertEmails: ["a@b.example"] }, "alert_emails", "ask the operator to add smtp"],
  [{ alertEmails: Array.from({ length: 11 }, () => "a@b.c") }, "alert_emails", "10"],
])("%j is refused, with what is right", async (members, path, message) => {
  const { gateway, customer } = fixture;
  const { accountId } = customer;
  const update = gateway.accounts.updateAccount({
    account: { accountId, ...members },
    updateMask: { paths: [path] },
  });
  await expect(update).rejects.toThrow(message ?? "name@example.com");
});
