/** TEXT tasks from the submit to the charge: real HTTP, real database, vendors that are strict. */
import { createClient } from "@connectrpc/connect";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { CallEnding } from "../../../gen/uas/billing/v1/call_pb.ts";
import { UsageSource } from "../../../gen/uas/type/v1/usage_pb.ts";
import { TaskService } from "../../../gen/uas/task/v1/task_service_pb.ts";
import { type Customer, type Gateway, startGateway } from "../../support/gateway.ts";
import { send } from "../../support/raw-http.ts";
import { answer, bytes, failure, hang, html, reset } from "../../support/upstream/behaviour.ts";
import { heldBack } from "../../support/upstream/held-back.ts";
import { strictChat } from "../../support/upstream/chat-strict.ts";
import { strictMessages } from "../../support/upstream/messages-strict.ts";
import { startUpstream, type Upstream } from "../../support/upstream/upstream.ts";
import { newRequestId } from "../harness.ts";

let chat: Upstream;
let broken: Upstream;
let messages: Upstream;
let gateway: Gateway;
let customer: Customer;

beforeAll(async () => {
  chat = await startUpstream({ style: strictChat() });
  broken = await startUpstream();
  messages = await startUpstream({ style: strictMessages() });
  const { secret: apiKey } = chat;
  const route = (vendor: string, model = "vendor-model") => ({ routes: [{ vendor, model }] });
  const hasty = { timeouts: { connectMs: 2_000, firstByteMs: 200, idleMs: 200 } };
  gateway = await startGateway({
    vendors: {
      chat: { baseUrl: chat.baseUrl, apiKey },
      hasty: { baseUrl: chat.baseUrl, apiKey, ...hasty },
      broken: { baseUrl: broken.baseUrl, apiKey: broken.secret },
      messages: { kind: "anthropic", baseUrl: messages.baseUrl, apiKey: messages.secret },
      demo: { kind: "demo", baseUrl: "" },
    },
    models: {
      chat: route("chat"),
      hasty: route("hasty"),
      broken: route("broken"),
      both: { routes: [...route("broken").routes, ...route("chat").routes] },
      messages: route("messages"),
      demo: route("demo", "instant"),
    },
  });
  customer = await gateway.customer();
});
beforeEach(() => {
  chat.clear();
  chat.always(answer());
  broken.clear();
});
afterAll(async () => {
  await gateway?.close();
  const vendors = [chat, broken, messages];
  expect(vendors.flatMap(({ violations }) => violations)).toEqual([]);
  await Promise.all(vendors.map((vendor) => vendor.close()));
});

type Json = Record<string, unknown>;

async function ask(path: string, body?: Json, requestId = newRequestId()): Promise<Json> {
  const reply = await send(`${gateway.url}${path}`, {
    method: body === undefined ? "GET" : "POST",
    headers: {
      authorization: `Bearer ${customer.key}`,
      "x-request-id": requestId,
      "content-type": "application/json",
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  const json = JSON.parse(reply.body.toString()) as Json;
  if (reply.status !== 200) throw new Error(`${reply.status}: ${JSON.stringify(json)}`);
  return json;
}

async function submit(modelKey: string, textParams: Json, requestId?: string): Promise<string> {
  const { taskId } = await ask("/api/ai/tasks", { modelKey, textParams }, requestId);
  return String(taskId);
}

/** Polls until it has ended. */
async function ended(taskId: string): Promise<Json> {
  for (const signal = AbortSignal.timeout(30_000); ; signal.throwIfAborted()) {
    const task = await ask(`/api/ai/tasks/${taskId}?wait=10`);
    if (task["status"] !== "progress") return task;
  }
}

describe("a text task", () => {
  it("a text task is served by the demo vendor", async () => {
    const task = await ended(await submit("demo", { prompt: "Hello" }));
    expect(task).toMatchObject({ status: "completed", errorCode: null, resultUrl: null });
    expect(task["resultContent"]).toContain("You said: Hello");
  });

  it("asks a strict vendor for what the parameters say, and costs its tokens to the nano-dollar", async () => {
    const before = await gateway.money(customer.accountId);
    const requestId = newRequestId();
    const usage = {
      prompt_tokens: 1_001,
      completion_tokens: 13,
      total_tokens: 1_014,
      prompt_tokens_details: { cached_tokens: 400 },
      completion_tokens_details: { reasoning_tokens: 5 },
    };
    chat.script(answer({ text: ["A ", "poem."], usage }));
    const textParams = {
      system_prompt: "Be brief.",
      messages: [{ role: "user", content: "Hi" }],
      prompt: "A poem",
      max_tokens: 50,
      temperature: 0.5,
      topP: 0.9,
      stop: ["END"],
      seed: 7,
      responseFormat: { type: "json_object" },
      imageUrls: ["data:image/png;base64,iVBORw0KGgo="],
    };
    const task = await ended(await submit("chat", textParams, requestId));
    // 601 at 250, 400 cached at 25, 13 at 2,000 nano-USD.
    const costNanos = 601n * 250n + 400n * 25n + 13n * 2_000n;
    expect(task).toMatchObject({
      status: "completed",
      resultContent: "A poem.",
      usage: { promptTokens: 1_001, completionTokens: 13, totalTokens: 1_014 },
    });
    expect(chat.last().json).toMatchObject({
      model: "vendor-model",
      temperature: 0.5,
      top_p: 0.9,
      stop: ["END"],
      seed: 7,
      response_format: { type: "json_object" },
    });
    expect(chat.last().json?.messages).toMatchObject([
      { role: "system", content: "Be brief." },
      { role: "user" },
      { role: "user", content: [{ type: "text", text: "A poem" }, { type: "image_url" }] },
    ]);
    const call = await gateway.call(requestId);
    expect(call).toMatchObject({
      callId: task["taskId"],
      path: "/api/ai/tasks",
      ending: CallEnding.COMPLETED,
      usageSource: UsageSource.UPSTREAM,
      usage: { inputTokens: 1_001, cachedInputTokens: 400, outputTokens: 13, reasoningTokens: 5 },
      upstreamRequestId: "req_vendor_7f3a",
      cost: { amountNanos: costNanos },
    });
    // One record and one hold: the generation has no separate ones.
    expect(await gateway.calls(requestId, 1)).toHaveLength(1);
    const after = await gateway.money(customer.accountId);
    expect(before.balance - after.balance).toBe(costNanos);
    expect(after.held).toBe(0n);
  });

  it("a text task is sent in the vendor's own style", async () => {
    const task = await ended(await submit("messages", { prompt: "Hello", maxTokens: 64 }));
    expect(task["status"]).toBe("completed");
    expect(String(task["resultContent"])).not.toBe("");
    expect(messages.last().json).toMatchObject({ model: "vendor-model", max_tokens: 64 });
  });

  it("a text task is charged by an estimate if its vendor counts nothing", async () => {
    const requestId = newRequestId();
    chat.script(answer({ text: ["Hello there"], usage: null as never }));
    const task = await ended(await submit("chat", { prompt: "Hi" }, requestId));
    expect(task).toMatchObject({ status: "completed", resultContent: "Hello there" });
    const call = await gateway.call(requestId);
    expect(call).toMatchObject({ usageSource: UsageSource.ESTIMATED });
    expect(call.usage?.outputTokens).toBe(3);
    expect(call.usage?.inputTokens).toBeGreaterThan(0);
  });

  it("a text task has an address too if its text is long", async () => {
    const text = "word ".repeat(60_000);
    chat.script(answer({ text: [text] }));
    const task = await ended(await submit("chat", { prompt: "Much" }));
    expect(task["resultContent"]).toBe(text);
    const file = await send(String(task["resultUrl"]), { method: "GET" });
    expect([file.status, file.headers["content-type"]]).toEqual([200, "text/plain; charset=utf-8"]);
    expect(file.body.toString()).toBe(text);
  });

  it("a text task with an invalid part of a message is refused with the part's name, before anything is held", async () => {
    const textParams = { messages: [{ role: "user", content: [{ type: "text", text: 5 }] }] };
    await expect(submit("chat", textParams)).rejects.toThrow(/400.*textParams\.messages\[0\]/);
  });
});

describe("a text that takes longer than the vendor's timeouts", () => {
  // A call to the same vendor is what ends the wait: the timeouts have then passed for the task
  // too.
  const call = () =>
    send(`${gateway.url}/v1/chat/completions`, {
      headers: { authorization: `Bearer ${customer.key}`, "content-type": "application/json" },
      body: JSON.stringify({ model: "hasty", messages: [{ role: "user", content: "Hi" }] }),
    });

  it.each([
    ["before its first byte", -1],
    ["between two of its words", 0.5],
  ])("is made all the same: %s", async (_, part) => {
    const passed = Promise.withResolvers<void>();
    chat.script(heldBack(answer({ text: ["At ", "last."] }), { part, until: passed.promise }));
    const taskId = await submit("hasty", { prompt: "Think long" });
    await chat.request(1);
    chat.script(hang);
    expect((await call()).status).toBe(504);
    passed.resolve();
    expect(await ended(taskId)).toMatchObject({ status: "completed", resultContent: "At last." });
  });
});

describe("a vendor's own failure", () => {
  it("a vendor's own failure is followed by the model's next vendor, and charged once", async () => {
    const before = await gateway.money(customer.accountId);
    broken.always(failure(500));
    const task = await ended(await submit("both", { prompt: "Hello" }));
    expect(task).toMatchObject({ status: "completed", resultContent: "Hello there!" });
    expect([broken.requests.length, chat.requests.length]).toEqual([1, 1]);
    const after = await gateway.money(customer.accountId);
    expect(before.balance - after.balance).toBe(11n * 250n + 7n * 2_000n);
  });

  it.each([
    ["the next one fails too", failure(502)],
    ["the next one has no capacity now: the first is not asked again (R-TSK-7)", failure(429)],
  ])("a vendor's own failure is the end where %s", async (_, behaviour) => {
    const before = await gateway.money(customer.accountId);
    broken.always(failure(500));
    chat.always(behaviour);
    const task = await ended(await submit("both", { prompt: "Hello" }));
    expect(task).toMatchObject({ status: "failed", errorCode: "upstream_error" });
    expect([broken.requests.length, chat.requests.length]).toEqual([1, 1]);
    expect(await gateway.money(customer.accountId)).toEqual(before);
  });

  it("a vendor's own failure in the middle of a text task is its end: what was made until then is paid for", async () => {
    broken.always(answer({ text: ["Half"], cutAfter: 2, ending: "destroy" }));
    const task = await ended(await submit("both", { prompt: "Hello" }));
    expect(task).toMatchObject({ status: "failed", errorCode: "upstream_error" });
    expect([broken.requests.length, chat.requests.length]).toEqual([1, 0]);
  });

  it("a vendor's own failure that arrives as an error in a stream is reported in its words", async () => {
    const errorEvent = { error: { message: "Too hot", type: "server_error", code: null } };
    broken.always(answer({ text: ["Half"], cutAfter: 2, errorEvent }));
    const task = await ended(await submit("broken", { prompt: "Hello" }));
    expect(task).toMatchObject({ status: "failed", error: { code: "upstream_error" } });
    expect(String((task["error"] as Json)["message"])).toContain("Too hot");
  });
});

describe("R-TSK-10: a text that is not made costs nothing", () => {
  const content = { message: "Not this", code: "content_policy_violation" };
  const filtered = answer({ text: [], finish: "content_filter" });
  it.each([
    ["refused content", failure(400, content), "content_rejected"],
    ["filtered content", filtered, "content_rejected"],
    ["a wrong parameter", failure(400, { message: "temperature" }), "invalid_parameters"],
    ["a failure of the vendor", failure(500), "upstream_error"],
    ["a page", html(), "upstream_error"],
    ["nonsense", bytes('{"no":"reply"}'), "upstream_error"],
    ["a reset", reset, "upstream_submit_unknown"],
  ])("a text task with %s costs nothing", async (_, behaviour, errorCode) => {
    const before = await gateway.money(customer.accountId);
    const requestId = newRequestId();
    chat.script(behaviour);
    const task = await ended(await submit("chat", { prompt: "Hello" }, requestId));
    expect(task).toMatchObject({ status: "failed", errorCode, resultContent: null });
    expect(chat.requests).toHaveLength(1);
    expect(await gateway.money(customer.accountId)).toEqual(before);
    expect(await gateway.call(requestId)).toMatchObject({ cost: { amountNanos: 0n } });
  });

  it("one that is cancelled while it is made stops at its vendor", async () => {
    const before = await gateway.money(customer.accountId);
    chat.script(hang);
    const taskId = await submit("chat", { prompt: "Hello" });
    await chat.request(1);
    await ask(`/api/ai/tasks/${taskId}/cancel`, {});
    expect(await ended(taskId)).toMatchObject({ status: "cancelled", resultContent: null });
    expect(await gateway.money(customer.accountId)).toEqual(before);
    const { task } = await createClient(TaskService, gateway.app.transport).getTask({ taskId });
    expect(task).toMatchObject({ vendor: "chat", cancelRequested: true });
  });
});
