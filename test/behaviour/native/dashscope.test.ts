/** `/dashscope`: calls that are answered at once, over raw HTTP and by the AI SDK's own client. */
import { createAlibaba } from "@ai-sdk/alibaba";
import { embed, generateText } from "ai";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { CallEnding } from "../../../gen/uas/billing/v1/call_pb.ts";
import { inertHeaders } from "../../../src/edge/inert-reply.ts";
import type { Customer } from "../../support/gateway.ts";
import {
  type DashscopeGateway,
  dashscopeError,
  dashscopeEvents,
  dashscopeReply,
  dashscopeUsage,
  startDashscopeGateway,
} from "./dashscope-vendor.ts";

let gateway: DashscopeGateway;
let customer: Customer;

beforeAll(async () => {
  gateway = await startDashscopeGateway();
  customer = await gateway.customer();
});

beforeEach(() => gateway.vendor.clear());

afterAll(async () => {
  // Outside of the prefix a text generation may come compressed.
  const chat = "POST /compatible-mode/v1/chat/completions: may be compressed";
  expect(gateway.vendor.violations.filter((each) => each !== chat)).toEqual([]);
  await gateway.close();
});

const text = "/api/v1/services/aigc/text-generation/generation";
const pictures = "/api/v1/services/aigc/multimodal-generation/generation";
const input = { messages: [{ role: "user", content: "Hi" }] };
const hi = JSON.stringify({ model: "qwen-plus", input, parameters: { result_format: "message" } });

function ask(path: string, init: RequestInit = {}): Promise<Response> {
  return fetch(`${gateway.url}/dashscope${path}`, {
    method: "POST",
    body: hi,
    ...init,
    headers: {
      "content-type": "application/json",
      authorization: `Bearer ${customer.key}`,
      ...(init.headers as Record<string, string>),
    },
  });
}

/** Returns the cost of tokens at 0.25 and 2.00 USD per million. */
function costOf({ input: read, output }: { input: number; output: number }): bigint {
  return BigInt(read) * 250n + BigInt(output) * 2_000n;
}

test("R-VND-2: a text passes byte for byte, is charged by its usage and found by its request id", async () => {
  const sent = `{ "model":"qwen-plus",\r\n "input": {"messages":[{"role":"user","content":"Hi"}]}, "parameters": {"seed": 9007199254740993, "top_p": -0.10}}`;
  const response = await ask(text, {
    body: sent,
    headers: { "x-request-id": "ds-1", "x-dashscope-workspace": "ours", cookie: "a=b" },
  });
  expect([response.status, await response.text()]).toEqual([200, dashscopeReply]);
  expect(response.headers.get("x-request-id")).toBe("ds-1");
  const [asked] = gateway.vendor.requests;
  expect(asked?.body.toString()).toBe(sent);
  expect(asked?.headers["x-dashscope-workspace"]).toBeUndefined();
  const names = [...response.headers.keys()].toSorted();
  const ours = [
    ...["connection", "content-length", "content-type", "date", "keep-alive"],
    ...Object.keys(inertHeaders),
  ];
  expect(names.filter((name) => !ours.includes(name))).toEqual(["x-request-id"]);
  const call = await gateway.call("ds-1");
  expect([call.path, call.model]).toEqual([`/dashscope${text}`, "qwen-plus"]);
  expect(call.cost?.amountNanos).toBe(costOf(dashscopeUsage));
});

test.each([true, false])("events keep their bytes, incremental: %s", async (isIncremental) => {
  const requestId = `ds-sse-${isIncremental}`;
  const parameters = { result_format: "message", incremental_output: isIncremental };
  const response = await ask(text, {
    body: JSON.stringify({ model: "qwen-plus", input, parameters }),
    headers: {
      "x-dashscope-sse": "enable",
      accept: "text/event-stream",
      "x-request-id": requestId,
    },
  });
  expect(response.headers.get("content-type")).toBe("text/event-stream;charset=UTF-8");
  expect(await response.text()).toBe(dashscopeEvents(isIncremental).join(""));
  const call = await gateway.call(requestId);
  expect([call.stream, call.ending]).toEqual([true, CallEnding.COMPLETED]);
  expect(call.cost?.amountNanos).toBe(costOf(dashscopeUsage));
});

test("pitfall 11: a stream that is cut breaks, and is charged by what came", async () => {
  const [first = "", second = ""] = dashscopeEvents(false);
  gateway.dashscope.next = {
    headers: { "content-type": "text/event-stream" },
    body: [first, second],
    isCut: true,
  };
  const response = await ask(text, {
    headers: { "x-dashscope-sse": "enable", "x-request-id": "ds-cut" },
  });
  await expect(response.text()).rejects.toThrow("terminated");
  const call = await gateway.call("ds-cut");
  expect(call.ending).toBe(CallEnding.UPSTREAM_FAILED);
  // Cumulative text is not added up: 6 bytes are 2 tokens, as Alibaba has counted.
  expect(call.cost?.amountNanos).toBe(costOf({ input: 22, output: 2 }));
});

test("an error inside a stream passes as it is, and the call is recorded as failed", async () => {
  const [first = ""] = dashscopeEvents(false);
  const error = `id:2\nevent:error\n:HTTP_STATUS/400\ndata:{"code":"DataInspectionFailed","message":"Output data may contain inappropriate content.","request_id":"r"}\n\n`;
  gateway.dashscope.next = {
    headers: { "content-type": "text/event-stream" },
    body: [first, error],
  };
  const response = await ask(text, {
    headers: { "x-dashscope-sse": "enable", "x-request-id": "ds-error" },
  });
  expect(await response.text()).toBe(first + error);
  expect((await gateway.call("ds-error")).ending).toBe(CallEnding.UPSTREAM_FAILED);
});

test("a model may be named by the gateway's name, which the vendor never receives", async () => {
  const body = `{"input":{"prompt":"our/qwen"},"model":"our/qwen" }`;
  const response = await ask(text, { body, headers: { "x-request-id": "ds-2" } });
  expect(response.status).toBe(200);
  expect(gateway.vendor.requests[0]?.body.toString()).toBe(
    `{"input":{"prompt":"our/qwen"},"model":"qwen-turbo" }`,
  );
  expect((await gateway.call("ds-2")).model).toBe("our/qwen");
});

test("a search or code execution by the vendor is refused, because the model has no price for it", async () => {
  for (const name of ["enable_search", "enable_code_interpreter"]) {
    const body = JSON.stringify({ model: "our/qwen", input, parameters: { [name]: true } });
    const response = await ask(text, { body });
    expect([response.status, await response.text()]).toEqual([400, expect.stringContaining(name)]);
  }
});

test.each([
  ["audio_input", { content: [{ audio: "https://example.com/a.mp3" }, { text: "Hi" }] }, {}],
  ["one address", { content: [{ video: ["https://example.com/1.jpg"] }] }, {}],
  ["audio_output", { content: "Hi" }, { modalities: ["text", "audio"] }],
  ["audio_output", { content: "Hi" }, { audio: { voice: "Cherry" } }],
])(
  "features that replies do not report separately are refused before the vendor is called: %s",
  async (word, said, parameters) => {
    for (const path of [text, pictures]) {
      const message = { role: "user", ...said };
      const body = JSON.stringify({
        model: "qwen-plus",
        input: { messages: [message] },
        parameters,
      });
      const response = await ask(path, { body });
      expect([response.status, await response.text()]).toEqual([
        400,
        expect.stringContaining(word),
      ]);
    }
    expect(gateway.vendor.requests).toEqual([]);
  },
);

test("R-MON-12: images and videos by address hold the most that the model reads of them", async () => {
  for (const [part, tokens] of [
    [{ image: "https://example.com/a.png" }, 16_384n],
    [{ video: "https://example.com/a.mp4" }, 1_048_576n],
  ] as const) {
    const message = { role: "user", content: [part, { text: "Hi" }] };
    const body = JSON.stringify({ model: "qwen-plus", input: { messages: [message] } });
    const id = `ds-${Object.keys(part)[0]}`;
    const response = await ask(text, { body, headers: { "x-request-id": id } });
    expect(response.status).toBe(200);
    const { held } = await gateway.call(id);
    expect(held?.amountNanos).toBeGreaterThanOrEqual(tokens * 250n);
  }
});

test("images of a synchronous reply are charged one by one", async () => {
  const body = JSON.stringify({ model: "qwen-image", input, parameters: { n: 2 } });
  const response = await ask(pictures, { body, headers: { "x-request-id": "ds-3" } });
  expect(await response.text()).toContain("https://dashscope-result.oss.test/1.png?Expires=1");
  const call = await gateway.call("ds-3");
  expect(call.cost?.amountNanos).toBe(40_000_000n);
});

test("pitfall 12: trouble with the operator's account is 503 in its form, and an alarm", async () => {
  const faults = [
    dashscopeError(
      400,
      "Arrearage",
      "Access denied, please make sure your account is in good standing.",
    ),
    dashscopeError(401, "InvalidApiKey", "Invalid API-key provided."),
    dashscopeError(
      403,
      "AllocationQuota.FreeTierOnly",
      "The free tier of the model has been exhausted.",
    ),
  ];
  for (const fault of faults) {
    gateway.dashscope.next = fault;
    const response = await ask(text, { headers: { "x-request-id": "ds-fault" } });
    expect([response.status, response.headers.get("retry-after")]).toEqual([503, "30"]);
    const told = (await response.json()) as Record<string, string>;
    expect([told["code"], told["request_id"]]).toEqual(["service_unavailable", "ds-fault"]);
    expect(told["message"]).not.toMatch(/standing|API-key|tier/);
  }
  expect(gateway.log.filter((line) => line.includes('"alarm":"money"'))).toHaveLength(2);
  expect(gateway.log.filter((line) => line.includes('"alarm":"credential"'))).toHaveLength(1);
});

test("R-ERR-3: the operator's own trouble in the first event of a stream is a 503", async () => {
  const code = "Arrearage";
  const event = `id:1\nevent:error\n:HTTP_STATUS/400\ndata:{"code":"${code}","message":"overdue","request_id":"r"}\n\n`;
  for (const status of [200, 400]) {
    const headers = { "content-type": "text/event-stream;charset=UTF-8" };
    gateway.dashscope.next = { status, headers, body: [event.slice(0, 20), event.slice(20)] };
    const response = await ask(text, { headers: { "x-dashscope-sse": "enable" } });
    expect([status, response.status]).toEqual([status, 503]);
    expect(await response.text()).not.toContain("overdue");
  }
});

test("R-ERR-4: errors about the request itself pass, a rate limit is reported in the gateway's words", async () => {
  gateway.dashscope.next = dashscopeError(400, "DataInspectionFailed", "Input data may be bad");
  const refused = await ask(text);
  expect(refused.status).toBe(400);
  expect(await refused.text()).toBe(
    '{"code":"DataInspectionFailed","message":"Input data may be bad","request_id":"vendor-body-id"}',
  );
  gateway.dashscope.next = dashscopeError(429, "Throttling.RateQuota");
  const slow = await ask(text);
  expect(slow.status).toBe(429);
  expect(await slow.json()).toMatchObject({ code: "rate_limit_exceeded" });
});

test.each(["fileid://file-fe-1", " FileID://file-fe-1,fileid://file-fe-2"])(
  "R-VND-3: files of the account at Alibaba belong to no customer: %s",
  async (content) => {
    const body = hi.replace('"Hi"', JSON.stringify(content).replace("/", "\\u002f"));
    expect(body).not.toBe(hi);
    const refused = await ask(text, { body });
    expect([refused.status, await refused.json()]).toMatchObject([
      400,
      { code: "invalid_request", message: expect.stringContaining("input.messages") },
    ]);
    expect(gateway.vendor.requests).toEqual([]);
  },
);

test("R-ERR-1: refusals of the gateway have its form", async () => {
  const poor = await gateway.customer({ balanceNanos: 0n });
  const other = await gateway.customer({ models: ["qwen-image"] });
  const rows: readonly (readonly [number, string, string, string])[] = [
    [401, "invalid_request", "uas_00000000000000000000000000000000", hi],
    [402, "insufficient_balance", poor.key, hi],
    [403, "access_denied", other.key, hi],
    [404, "model_not_found", customer.key, hi.replace("qwen-plus", "qwen-none")],
    [400, "invalid_request", customer.key, hi.replace("qwen-plus", "qwen-image")],
    [400, "invalid_request", customer.key, `{"model":"qwen-plus",${hi.slice(1)}`],
  ];
  for (const [status, code, key, body] of rows) {
    const headers = { authorization: `Bearer ${key}`, "x-request-id": "ds-refused" };
    const response = await ask(text, { body, headers });
    expect([response.status, await response.json()]).toEqual([
      status,
      { code, message: expect.any(String), request_id: "ds-refused" },
    ]);
  }
  expect(gateway.vendor.requests).toEqual([]);
});

test("a synchronous route cannot be turned into a task, which would be free", async () => {
  const headers = { "x-dashscope-async": "enable" };
  expect((await ask(text, { headers })).status).toBe(400);
  const body = JSON.stringify({ model: "qwen-plus", input });
  expect((await ask(pictures, { body, headers })).status).toBe(400);
  expect(gateway.vendor.requests).toEqual([]);
});

test("R-ERR-7: a header that would ask for a task in other words does not make the vendor refuse the gateway's key", async () => {
  for (const value of ["disable", "ENABLE,enable", ""]) {
    const response = await ask(text, { headers: { "x-dashscope-async": value } });
    expect([value, response.status]).toEqual([value, 200]);
  }
});

test("pitfall 4: what the account has, and what is not declared, is 404", async () => {
  const headers = { authorization: `Bearer ${customer.key}` };
  for (const path of [
    "/api/v1/tasks/",
    "/api/v1/tasks",
    "/api/v1/uploads",
    "/api/v1/apps/x/completion",
  ]) {
    const response = await fetch(`${gateway.url}/dashscope${path}`, { headers });
    expect([path, response.status]).toEqual([path, 404]);
  }
  expect(gateway.vendor.requests).toEqual([]);
});

test("@ai-sdk/alibaba makes embeddings in Alibaba's form, and chats by the gateway's own address", async () => {
  const alibaba = createAlibaba({
    apiKey: customer.key,
    baseURL: `${gateway.url}/v1`,
    embeddingBaseURL: `${gateway.url}/dashscope/api/v1`,
  });
  const headers = { "x-request-id": "ds-embed" };
  const model = alibaba.embeddingModel("text-embedding-v4");
  const { embedding, usage } = await embed({ model, value: "Hi", headers });
  expect([embedding, usage.tokens]).toEqual([[0.5, -0.25], 9]);
  expect((await gateway.call("ds-embed")).cost?.amountNanos).toBe(9n * 250n);
  gateway.dashscope.next = {
    body: '{"id":"c","object":"chat.completion","created":1,"model":"qwen-plus","choices":[{"index":0,"message":{"role":"assistant","content":"Hello"},"finish_reason":"stop"}],"usage":{"prompt_tokens":3,"completion_tokens":2,"total_tokens":5}}',
  };
  const reply = await generateText({ model: alibaba("qwen-plus"), prompt: "Hi" });
  expect(reply.text).toBe("Hello");
  expect(gateway.vendor.requests[1]?.url).toBe("/compatible-mode/v1/chat/completions");
});

test.each(["{}", '{"request_id":"r","code":"InternalError","message":"failed"}'])(
  "a reply of %s with status 200 passes free, and its record says that the vendor failed",
  async (reply) => {
    gateway.vendor.answer(() => ({ body: reply }));
    const id = `dashscope-failed-${reply.length}`;
    const response = await ask(text, {
      headers: { "x-request-id": id },
    });
    expect([response.status, await response.text()]).toEqual([200, reply]);
    const call = await gateway.call(id);
    expect([call.ending, call.status, call.errorCode]).toEqual([
      CallEnding.UPSTREAM_FAILED,
      200,
      "upstream_error",
    ]);
    expect(call.cost?.amountNanos ?? 0n).toBe(0n);
  },
);
