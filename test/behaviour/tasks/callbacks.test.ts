/** Vendors that call back at a whole gateway: real HTTP, real database, a strict Replicate. */
import type { JsonObject } from "@bufbuild/protobuf";
import { createClient } from "@connectrpc/connect";
import { createConnectTransport, Http2SessionManager } from "@connectrpc/connect-node";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { ModelType } from "../../../gen/uas/inference/v1/model_pb.ts";
import { OperatorService } from "../../../gen/uas/operator/v1/operator_service_pb.ts";
import { TaskService } from "../../../gen/uas/task/v1/task_service_pb.ts";
import { bearer, operatorToken } from "../rpc/harness.ts";
import { type Customer, type Gateway, priceDefault, startGateway } from "../../support/gateway.ts";
import { type RawReply, send } from "../../support/raw-http.ts";
import {
  prediction,
  replicateError,
  replicateSecret,
} from "../../unit/provider/task/replicate-vendor.ts";
import {
  type SimulatedVendor,
  startVendor,
  type TaskAnswer,
  textIn,
} from "../../unit/provider/task/simulated.ts";

/** A Replicate that is at work until the test says what came of it, and remembers where to call. */
interface Replicate extends SimulatedVendor {
  readonly webhooks: string[];
  fate: JsonObject;
}

async function startReplicate(): Promise<Replicate> {
  const webhooks: string[] = [];
  const vendor = await startVendor(({ method, url, json }): TaskAnswer => {
    if (method === "POST") {
      webhooks.push(textIn(json?.["webhook"]));
      const made = prediction(`p${webhooks.length}`, { status: "starting" });
      return { ...made, status: 201, isWork: true };
    }
    const [, number] = /^\/v1\/predictions\/p(\d+)$/.exec(url) ?? [];
    const webhook = webhooks[Number(number) - 1];
    if (webhook === undefined) return replicateError(404, "Not found.");
    return prediction(`p${number}`, { webhook, ...started.fate });
  });
  const started = Object.assign(vendor, { webhooks, fate: atWork });
  return started;
}

const atWork = { status: "processing" };
const done = { status: "succeeded", output: "data:image/png;base64,iVBORw0KGgo=" };

let replicate: Replicate;
let gateway: Gateway;
let customer: Customer;

beforeAll(async () => {
  replicate = await startReplicate();
  const price = { ...priceDefault, input: undefined, output: undefined };
  gateway = await startGateway({
    vendors: { acme: { kind: "replicate", baseUrl: replicate.origin, apiKey: replicateSecret } },
    models: {
      picture: {
        type: ModelType.IMAGE,
        routes: [
          {
            vendor: "acme",
            model: "acme/picture",
            costs: [{ fromMs: -Infinity, price: { ...price, image: 30_000_000n } }],
          },
        ],
        price: { ...price, image: 40_000_000n },
      },
    },
    settings: { publicUrl: "https://gateway.example", operatorToken },
  });
  customer = await gateway.customer();
});
beforeEach(() => {
  replicate.fate = atWork;
  replicate.webhooks.length = 0;
});
afterAll(async () => {
  await gateway?.close();
  await replicate.close();
});

type Json = Record<string, unknown>;

async function ask(path: string, body?: Json): Promise<Json> {
  const reply = await send(`${gateway.url}${path}`, {
    method: body === undefined ? "GET" : "POST",
    headers: { authorization: `Bearer ${customer.key}`, "content-type": "application/json" },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  return JSON.parse(reply.body.toString()) as Json;
}

async function submit(): Promise<string> {
  const body = { modelKey: "picture", imageParams: { prompt: "A lighthouse" } };
  return String((await ask("/api/ai/tasks", body))["taskId"]);
}

/** Reads it until it is as the test wants it. */
async function taskThat(taskId: string, is: (task: Json) => boolean): Promise<Json> {
  for (const signal = AbortSignal.timeout(30_000); ; signal.throwIfAborted()) {
    const task = await ask(`/api/ai/tasks/${taskId}?wait=1`);
    if (is(task)) return task;
  }
}

/**
 * Returns the path of the vendor's callback; it is called at an address that this test can reach.
 */
async function callbackPath(): Promise<string> {
  await expect.poll(() => replicate.webhooks).toHaveLength(1);
  const { origin, pathname } = new URL(replicate.webhooks[0] ?? "");
  expect(origin).toBe("https://gateway.example");
  return pathname;
}

function call(path: string, body = "{}", method = "POST"): Promise<RawReply> {
  const headers = { "content-type": "application/json" };
  return send(`${gateway.url}${path}`, { method, headers, ...(method === "POST" && { body }) });
}

function saysMetric(line: string): Promise<boolean> {
  return gateway.app.metrics.registry.metrics().then((text) => text.includes(line));
}

describe("R-TSK-9: a vendor that calls back", () => {
  it("a vendor that calls back is polled at once, and the task ends without a poll of a client", async () => {
    const taskId = await submit();
    const path = await callbackPath();
    await taskThat(taskId, ({ stage }) => stage === "running");
    replicate.fate = done;
    const reply = await call(path, JSON.stringify({ id: "p1", ...done }));
    expect([reply.status, JSON.parse(reply.body.toString())]).toEqual([200, { received: true }]);
    const task = await taskThat(taskId, ({ status }) => status !== "progress");
    expect(task).toMatchObject({ status: "completed", cost: { amount: "0.04" } });
    // Once more changes nothing, and is no fault of the vendor's.
    expect((await call(path)).status).toBe(200);
    expect(await ask(`/api/ai/tasks/${taskId}`)).toEqual(task);
    const charged = 'uas_billing_charged_usd_total{model="picture"} 0.04';
    await expect.poll(() => saysMetric(charged)).toBe(true);
    const cost = 'uas_billing_vendor_cost_usd_total{model="picture",vendor="acme"} 0.03';
    await expect.poll(() => saysMetric(cost)).toBe(true);
  });

  it("a vendor that calls back is believed nothing: a callback that lies ends no task", async () => {
    const taskId = await submit();
    const path = await callbackPath();
    for (const body of [JSON.stringify({ id: "p1", ...done }), "{", "", "[]"]) {
      expect((await call(path, body)).status).toBe(200);
    }
    expect(await ask(`/api/ai/tasks/${taskId}`)).toMatchObject({ status: "progress" });
    replicate.fate = { status: "failed", error: "CUDA out of memory" };
    await call(path);
    const task = await taskThat(taskId, ({ status }) => status !== "progress");
    expect(task).toMatchObject({ status: "failed", errorCode: "upstream_error" });
  });

  it("R-TSK-7: notifies of a task whose submit got no answer, and nothing is made twice", async () => {
    const begun = replicate.begun();
    replicate.next("lose");
    const taskId = await submit();
    const path = await callbackPath();
    const { getTask } = createClient(TaskService, gateway.app.transport);
    await expect.poll(async () => (await getTask({ taskId })).task?.vendor).toBe("acme");
    replicate.fate = done;
    await call(path, JSON.stringify({ id: "p1", ...done }));
    const task = await taskThat(taskId, ({ status }) => status !== "progress");
    expect(task).toMatchObject({ status: "completed" });
    expect((await getTask({ taskId })).task).toMatchObject({ vendorTaskId: "p1" });
    expect(replicate.begun() - begun).toBe(1);
  });

  it("strangers find nothing at a vendor's callback address", async () => {
    const foreign = "/callbacks/0199a0b0-1111-4222-8333-444455556666";
    for (const path of [foreign, "/callbacks/x", "/callbacks/"]) {
      expect((await call(path)).status).toBe(404);
    }
    const refused = await call(foreign, "", "GET");
    expect([refused.status, refused.headers["allow"]]).toEqual([405, "POST"]);
  });

  it("its address stands in no log", () => {
    const text = gateway.log.join("");
    expect(text).toContain("/callbacks/:token");
    for (const webhook of replicate.webhooks) {
      expect(text).not.toContain(new URL(webhook).pathname);
    }
  });
});

/** Returns the vendor's failure that operators see. */
async function vendorFailure(): Promise<string | undefined> {
  const baseUrl = gateway.internalUrl;
  const sessionManager = new Http2SessionManager(baseUrl);
  const transport = createConnectTransport({ baseUrl, httpVersion: "2", sessionManager });
  const { listVendors } = createClient(OperatorService, transport);
  const { vendors } = await listVendors({}, { headers: bearer(operatorToken) });
  sessionManager.abort();
  return vendors[0]?.failure;
}

describe("the operator's view of tasks", () => {
  it("R-ERR-3: a vendor that refuses the gateway itself is an alarm", async () => {
    const before = gateway.log.length;
    replicate.next(replicateError(402, "You have insufficient credit to run this model."));
    const taskId = await submit();
    const reason = 'uas_upstream_alarms_total{vendor="acme",reason="money"} 1';
    await expect.poll(() => saysMetric(reason)).toBe(true);
    const lines = gateway.log.slice(before).map((line) => JSON.parse(line) as Json);
    expect(lines.find(({ alarm }) => alarm !== undefined)).toMatchObject({
      level: 50,
      vendor: "acme",
      model: "acme/picture",
      alarm: "money",
    });
    expect(await vendorFailure()).toBe("tasks: refuses the operator's money");
    // The vendor is called again after a pause; it accepts the task, and all later ones.
    await expect.poll(() => replicate.webhooks).toHaveLength(1);
    replicate.fate = done;
    await call(await callbackPath());
    const ended = await taskThat(taskId, ({ status }) => status !== "progress");
    expect(ended["status"]).toBe("completed");
  });

  it("an account that a task takes below its threshold", async () => {
    customer = await gateway.customer();
    const { balance } = await gateway.money(customer.accountId);
    const lowBalanceThreshold = { currencyCode: "USD", amountNanos: balance - 1n };
    await gateway.accounts.updateAccount({
      account: { accountId: customer.accountId, lowBalanceThreshold },
      updateMask: { paths: ["low_balance_threshold"] },
    });
    const before = gateway.log.length;
    replicate.fate = done;
    const taskId = await submit();
    await call(await callbackPath());
    await taskThat(taskId, ({ status }) => status !== "progress");
    const lines = () => gateway.log.slice(before).map((line) => JSON.parse(line) as Json);
    // The operator is notified once the end is durable; a poll may see it before.
    const task = () => lines().find(({ msg }) => msg === "task");
    await expect.poll(task, { interval: 5, timeout: 30_000 }).toBeDefined();
    const told = lines().filter((line) => "balance" in line);
    expect(told).toMatchObject([{ level: 40, accountId: customer.accountId, balance: "99.96" }]);
    expect(await saysMetric("uas_billing_low_balance_total 1")).toBe(true);
    expect(task()).toMatchObject({ taskId, status: "completed", cost: "0.04", vendorCost: "0.03" });
  });
});
