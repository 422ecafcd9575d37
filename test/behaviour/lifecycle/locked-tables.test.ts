/**
 * Tables that another session has locked, as a migration or an administrator may: requests that
 * need them fail with a message, and all others are served.
 */
import { createClient } from "@connectrpc/connect";
import { Client } from "pg";
import { afterAll, beforeAll, expect, test } from "vitest";
import { UserService } from "../../../gen/uas/account/v1/user_service_pb.ts";
import { WebhookService } from "../../../gen/uas/webhook/v1/webhook_service_pb.ts";
import { type Customer, type Gateway, startGateway } from "../../support/gateway.ts";
import { send } from "../../support/raw-http.ts";

let gateway: Gateway;
let customer: Customer;
let locker: Client;

beforeAll(async () => {
  gateway = await startGateway({
    vendors: { demo: { kind: "demo", baseUrl: "" } },
    models: { text: { routes: [{ vendor: "demo", model: "instant" }] } },
  });
  customer = await gateway.customer();
  locker = new Client({ connectionString: gateway.databaseUrl });
  await locker.connect();
});
afterAll(async () => {
  await locker?.end();
  await gateway?.close();
});

async function ask(path: string, body?: object): Promise<number> {
  const { status } = await send(`${gateway.url}${path}`, {
    method: body === undefined ? "GET" : "POST",
    headers: { authorization: `Bearer ${customer.key}`, "content-type": "application/json" },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  return status;
}

const id = "01890000-0000-7000-8000-000000000000";

test("R-MON-7: requests that need a locked table get 503 while it is locked, and keys, balances and sign-in are served", async () => {
  const { accountId } = customer;
  const webhooks = createClient(WebhookService, gateway.app.transport);
  const users = createClient(UserService, gateway.app.transport);
  await locker.query(
    "begin; lock table task, result_file, stored_response, webhook_delivery, webhook_event in access exclusive mode",
  );
  const task = { modelKey: "text", textParams: { prompt: "x" } };
  const background = { model: "text", input: "x", background: true };
  // More of each than there are connections.
  const blocked = Array.from({ length: 10 }, () => [
    ask("/api/ai/tasks", task),
    ask("/api/ai/tasks", { ...task, callbackId: "order" }),
    ask(`/api/ai/tasks/${id}`),
    ask("/api/ai/tasks"),
    ask(`/v1/responses/resp_${id.replaceAll("-", "")}`),
    ask("/v1/responses", background),
    ask(`/files/${"A".repeat(26)}.png`),
    webhooks.listDeliveries({ accountId }).then(
      () => 200,
      (error: { readonly message: string }) => (/\[unavailable\]/.test(error.message) ? 503 : 500),
    ),
  ]).flat();
  const served = [ask("/v1/key"), ask("/v1/credits"), ask("/v1/models")];
  await users.createSignInLink({ accountId });
  expect(await Promise.all(served)).toEqual([200, 200, 200]);
  expect(await Promise.all(blocked)).toEqual(blocked.map(() => 503));
  await locker.query("rollback");
  expect(await ask("/api/ai/tasks")).toBe(200);
});
