/** `/gemini`: calls that are answered at once, over raw HTTP. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { CallEnding } from "../../../gen/uas/billing/v1/call_pb.ts";
import { inertHeaders } from "../../../src/edge/inert-reply.ts";
import { formatUsd } from "../../../src/core/money.ts";
import type { Customer } from "../../support/gateway.ts";
import { type NativeGateway, startGeminiGateway } from "./gemini-gateway.ts";
import { geminiArray, geminiEvents, geminiReply, geminiUsage } from "./gemini-replies.ts";

let gateway: NativeGateway;
let customer: Customer;

beforeAll(async () => {
  gateway = await startGeminiGateway();
  customer = await gateway.customer();
});

beforeEach(() => gateway.vendor.clear());

afterAll(async () => {
  expect(gateway.vendor.violations).toEqual([]);
  await gateway.close();
});

const body = JSON.stringify({ contents: [{ role: "user", parts: [{ text: "Hi" }] }] });

function ask(path: string, init: RequestInit = {}): Promise<Response> {
  return fetch(`${gateway.url}/gemini${path}`, {
    method: "POST",
    body,
    ...init,
    headers: {
      "content-type": "application/json",
      "x-goog-api-key": customer.key,
      ...(init.headers as Record<string, string>),
    },
  });
}

test.each([
  [200, "gs://shared-bucket/film.mp4"],
  [400, "gs://shared-bucket"],
  [400, "gs://shared-bucket/"],
  [400, "gs://shared-bucket.evil/film.mp4"],
  [400, "gs://other/shared-bucket/film.mp4"],
  [400, "GS://shared-bucket/film.mp4"],
  [400, " gs://shared-bucket/film.mp4"],
  [400, "g\ts://other/film.mp4"],
  [400, "gs:other/film.mp4"],
  [400, "gs:\\\\shared-bucket/film.mp4"],
])("answers %i to %j: only buckets that the operator shares are read", async (status, fileUri) => {
  gateway.vendor.answer(() => ({ body: geminiReply }));
  const contents = [{ parts: [{ fileData: { fileUri, mimeType: "video/mp4" } }] }];
  const response = await ask("/v1beta/models/gemini-tools:generateContent", {
    body: JSON.stringify({ contents }),
  });
  const text = await response.text();
  expect([response.status, text.includes("file_buckets")]).toEqual([status, status === 400]);
  expect(gateway.vendor.requests).toHaveLength(status === 200 ? 1 : 0);
});

/** Returns the cost of tokens at 0.25 and 2.00 USD per million. */
function costOf({ input, output }: { input: number; output: number }): bigint {
  return BigInt(input) * 250n + BigInt(output) * 2_000n;
}

test("R-VND-2: generateContent passes byte for byte, is charged by its usage and found by its request id", async () => {
  gateway.vendor.answer(() => ({ body: geminiReply }));
  const sent = '{ "contents": [{"parts":[{"text":"Hi"}]}],  "seed": 9007199254740993, "x": -0.10 }';
  const response = await ask("/v1beta/models/gemini-x:generateContent?%24alt=json", {
    body: sent,
    headers: { "x-request-id": "native-1", cookie: "a=b", "x-forwarded-for": "1.2.3.4" },
  });
  expect(response.status).toBe(200);
  expect(response.headers.get("x-request-id")).toBe("native-1");
  expect(await response.text()).toBe(geminiReply);
  const [asked] = gateway.vendor.requests;
  expect(asked?.body.toString()).toBe(sent);
  expect(asked?.url).toBe("/v1beta/models/gemini-x:generateContent?%24alt=json");
  const call = await gateway.call("native-1");
  const lines = gateway.log.filter((line) => line.includes('"requestId":"native-1"'));
  expect(lines.map((line) => (JSON.parse(line) as { msg: string }).msg)).toEqual(["call"]);
  expect(call.path).toBe("/gemini/v1beta/models/gemini-x:generateContent");
  expect(call.model).toBe("gemini-x");
  expect(call.cost?.amountNanos).toBe(costOf(geminiUsage));
});

test("R-TXT-12: a complete reply has its cost in a header on request, and keeps its bytes", async () => {
  gateway.vendor.answer(() => ({ body: geminiReply }));
  const headers = { "x-uas-cost": "true", "x-request-id": "native-cost" };
  const response = await ask("/v1beta/models/gemini-x:generateContent", { headers });
  expect(await response.text()).toBe(geminiReply);
  const { cost } = await gateway.call("native-cost");
  expect(response.headers.get("x-uas-cost")).toBe(formatUsd(cost?.amountNanos ?? 0n));
  expect(cost?.amountNanos).toBe(costOf(geminiUsage));
  expect(gateway.vendor.requests[0]?.headers["x-uas-cost"]).toBeUndefined();
});

test("pitfall 8: vendor headers pass only where the route table names them", async () => {
  gateway.vendor.answer(() => ({ body: geminiReply, headers: { "content-encoding": "identity" } }));
  const response = await ask("/v1beta/models/gemini-x:generateContent");
  const names = [...response.headers.keys()].toSorted();
  const ours = [
    ...["connection", "content-length", "content-type", "date", "keep-alive"],
    ...Object.keys(inertHeaders),
  ];
  expect(names.filter((name) => !ours.includes(name))).toEqual(["x-request-id"]);
  expect(await response.text()).not.toContain(gateway.vendor.secret);
});

test("a stream keeps its bytes, cut anywhere, and is charged by its last usage", async () => {
  const whole = Buffer.from(geminiEvents.join(""));
  // In the middle of a character, and of a line end.
  const cuts = [0, 50, whole.indexOf(0xc3) + 1, whole.indexOf("\r\n\r\n") + 1, whole.length];
  const pieces = cuts.slice(1).map((cut, at) => whole.subarray(cuts[at], cut));
  const headers = { "content-type": "text/event-stream" };
  gateway.vendor.answer(() => ({ headers, body: pieces }));
  const response = await ask("/v1beta/models/gemini-x:streamGenerateContent?alt=sse", {
    headers: { "x-request-id": "native-2" },
  });
  expect(response.headers.get("content-type")).toBe("text/event-stream");
  expect(Buffer.from(await response.arrayBuffer())).toEqual(whole);
  const call = await gateway.call("native-2");
  expect(call.stream).toBe(true);
  expect(call.cost?.amountNanos).toBe(costOf(geminiUsage));
});

test.each([
  ["the first event", 0],
  ["a later event", 1],
])(
  "a stream that reports an error in %s does not show the operator's credential",
  async (_what, at) => {
    const { secret } = gateway.vendor;
    const error = { code: 403, message: `The key ${secret} may not`, status: "PERMISSION_DENIED" };
    const events = [...geminiEvents.slice(0, at), `data: ${JSON.stringify({ error })}\r\n\r\n`];
    const headers = { "content-type": "text/event-stream" };
    gateway.vendor.answer(() => ({ headers, body: events }));
    const id = `native-secret-${at}`;
    const response = await ask("/v1beta/models/gemini-x:streamGenerateContent?alt=sse", {
      headers: { "x-request-id": id },
    });
    const text = await response.text().catch(() => "");
    expect(text).not.toContain(secret);
    if (at > 0) expect(text).toContain("PERMISSION_DENIED");
    await gateway.call(id);
    expect(gateway.log.filter((line) => line.includes(secret))).toEqual([]);
  },
);

test("without alt=sse a stream is an array, passed on as it grows", async () => {
  const pieces = geminiArray.flatMap((piece) => [piece.slice(0, 7), piece.slice(7)]);
  gateway.vendor.answer(() => ({ body: pieces }));
  const response = await ask("/v1beta/models/gemini-x:streamGenerateContent", {
    headers: { "x-request-id": "native-3" },
  });
  expect(await response.text()).toBe(geminiArray.join(""));
  const call = await gateway.call("native-3");
  expect(call.cost?.amountNanos).toBe(costOf(geminiUsage));
});

test("a model may be named by the gateway's name", async () => {
  gateway.vendor.answer(() => ({ body: geminiReply }));
  const response = await ask("/v1beta/models/our/name:generateContent", {
    headers: { "x-request-id": "native-4" },
  });
  expect(response.status).toBe(200);
  expect(gateway.vendor.requests[0]?.url).toBe("/v1beta/models/gemini-y:generateContent");
  expect((await gateway.call("native-4")).model).toBe("our/name");
});

test("an image is charged as one image", async () => {
  const picture = { inlineData: { mimeType: "image/png", data: "iVBORw0KGgo=" } };
  const usageMetadata = { promptTokenCount: 8, candidatesTokenCount: 1_290 };
  const reply = {
    candidates: [{ content: { parts: [picture] }, finishReason: "STOP" }],
    usageMetadata,
  };
  gateway.vendor.answer(() => ({ body: JSON.stringify(reply) }));
  const response = await ask("/v1beta/models/gemini-image:generateContent", {
    headers: { "x-request-id": "native-5" },
  });
  expect(await response.json()).toEqual(reply);
  const call = await gateway.call("native-5");
  expect(call.cost?.amountNanos).toBe(8n * 250n + 39_000_000n);
});

test("countTokens is free, and embeddings cost their input tokens", async () => {
  gateway.vendor.answer(({ url }) => ({
    body: url.includes("count") ? '{"totalTokens": 3}' : '{"embeddings": [{"values": [0.10]}]}',
  }));
  const counted = await ask("/v1beta/models/gemini-x:countTokens");
  expect(await counted.text()).toBe('{"totalTokens": 3}');
  const text = "a sentence to embed, ".repeat(20);
  const embedded = await ask("/v1beta/models/embed-x:batchEmbedContents", {
    body: JSON.stringify({ requests: [{ content: { parts: [{ text }] } }] }),
    headers: { "x-request-id": "native-6" },
  });
  expect(await embedded.text()).toBe('{"embeddings": [{"values": [0.10]}]}');
  const call = await gateway.call("native-6");
  expect(call.cost?.amountNanos).toBeGreaterThan(25_000n);
  expect(call.usage?.outputTokens).toBe(0);
});

test.each([
  ["google_search", { tools: [{ google_search: {} }] }],
  ["codeExecution", { tools: [{ functionDeclarations: [] }, { codeExecution: {} }] }],
  ["audio_output", { generationConfig: { responseModalities: ["AUDIO"] } }],
  ["audio_output", { generation_config: { response_modalities: ["audio"] } }],
  ["image_output", { generationConfig: { responseModalities: ["TEXT", "IMAGE"] } }],
  ["service_tier", { serviceTier: "priority" }],
])(
  "features that Google bills beyond tokens are refused before the vendor is called: %s %j",
  async (word, more) => {
    const response = await ask("/v1beta/models/gemini-x:generateContent", {
      body: JSON.stringify({ contents: [{ parts: [{ text: "Hi" }] }], ...more }),
    });
    expect([response.status, await response.text()]).toEqual([400, expect.stringContaining(word)]);
    expect(gateway.vendor.requests).toEqual([]);
  },
);

test.each(["generateContent", "streamGenerateContent?alt=sse"])(
  "tools, audio and images that the model has a price for are charged by their own units, within the request: %s",
  async (method) => {
    const candidate = {
      content: { parts: [{ executableCode: { code: "1" } }, { text: "Hello" }] },
      finishReason: "STOP",
      groundingMetadata: { webSearchQueries: ["a", "b", "a"] },
    };
    const reply = {
      candidates: [candidate],
      usageMetadata: {
        promptTokenCount: 1_000,
        promptTokensDetails: [{ modality: "AUDIO", tokenCount: 600 }],
        candidatesTokenCount: 50,
        candidatesTokensDetails: [
          { modality: "AUDIO", tokenCount: 30 },
          { modality: "IMAGE", tokenCount: 10 },
        ],
      },
    };
    const isStream = method.startsWith("stream");
    const json = JSON.stringify(reply);
    gateway.vendor.answer(() =>
      isStream
        ? { body: `data: ${json}\n\n`, headers: { "content-type": "text/event-stream" } }
        : { body: json },
    );
    const id = `tools-${method}`;
    const inlineData = { mimeType: "audio/wav", data: "AAAA" };
    const response = await ask(`/v1beta/models/gemini-tools:${method}`, {
      body: JSON.stringify({
        contents: [{ parts: [{ inlineData }, { text: "Hi" }] }],
        tools: [{ googleSearch: {} }],
        generationConfig: { responseModalities: ["TEXT", "AUDIO", "IMAGE"] },
      }),
      headers: { "x-request-id": id },
    });
    expect([response.status, await response.text()]).toEqual([200, expect.any(String)]);
    const { usage, cost } = await gateway.call(id);
    // The code was not asked for.
    expect(usage).toMatchObject({ audioInputTokens: 600, audioOutputTokens: 30, webSearches: 2 });
    expect(usage?.imageOutputTokens).toBe(10);
    expect(usage?.codeExecutions).toBeUndefined();
    expect(cost?.amountNanos).toBe(
      400n * 250n + 600n * 1_000n + 10n * 2_000n + 30n * 10_000n + 10n * 30_000n + 2n * 14_000_000n,
    );
  },
);

test.each([
  { inlineData: { mimeType: "audio/wav", data: "AAAA" } },
  { inline_data: { mime_type: "video/mp4", data: "AAAA" } },
  { fileData: { fileUri: "https://example.com/a" } },
])("audio in a request is refused where the model has no price for it: %j", async (part) => {
  const response = await ask("/v1beta/models/gemini-x:generateContent", {
    body: JSON.stringify({ contents: [{ parts: [part, { text: "Hi" }] }] }),
  });
  expect([response.status, await response.text()]).toEqual([
    400,
    expect.stringContaining("audio_input"),
  ]);
  expect(gateway.vendor.requests).toEqual([]);
});

test.each([
  ["google_search", { tools: [{ type: "google_search" }] }],
  ["mcp_server", { tools: [{ type: "mcp_server", url: "https://a.test" }] }],
  ["audio_output", { response_modalities: ["audio"] }],
  ["image_output", { response_modalities: ["image"] }],
])("an interaction is refused what Google bills beyond tokens: %s", async (word, more) => {
  for (const background of [true, false]) {
    const response = await ask("/v1beta/interactions", {
      body: JSON.stringify({ model: "gemini-x", input: "Hi", background, ...more }),
    });
    expect([response.status, await response.text()]).toEqual([400, expect.stringContaining(word)]);
  }
  expect(gateway.vendor.requests).toEqual([]);
});

test("a batch of embeddings says its model again: by our name it becomes the vendor's, another is refused", async () => {
  gateway.vendor.answer(() => ({ body: '{"embeddings": [{"values": [0.5]}]}' }));
  const content = { parts: [{ text: 'say "model": "models/embedder"' }] };
  const embed = (model: string) =>
    ask("/v1beta/models/embedder:batchEmbedContents", {
      body: JSON.stringify({ requests: [{ model, content }] }),
    });
  expect((await embed("models/embedder")).status).toBe(200);
  const [asked] = gateway.vendor.requests;
  expect(asked?.url).toBe("/v1beta/models/embed-x:batchEmbedContents");
  expect(asked?.json).toEqual({ requests: [{ model: "models/embed-x", content }] });
  expect((await embed("models/gemini-x")).status).toBe(400);
  expect(gateway.vendor.requests.length).toBe(1);
});

test("pitfall 11: a stream that the vendor drops breaks for its client, and what came is charged", async () => {
  const headers = { "content-type": "text/event-stream" };
  gateway.vendor.answer(() => ({ headers, body: geminiEvents.slice(0, 2), isCut: true }));
  const response = await ask("/v1beta/models/gemini-x:streamGenerateContent?alt=sse", {
    headers: { "x-request-id": "native-7" },
  });
  expect(response.status).toBe(200);
  await expect(response.text()).rejects.toThrow();
  const call = await gateway.call("native-7");
  expect(call.cost?.amountNanos).toBe(costOf({ input: 10, output: 2 }));
});

test("R-ERR-3, pitfall 12: the vendor's trouble with our account is 503 in its own form", async () => {
  const reason = { reason: "API_KEY_INVALID" };
  const error = { code: 400, message: "API key not valid.", details: [reason] };
  gateway.vendor.answer(() => ({ status: 400, body: JSON.stringify({ error }) }));
  for (const path of ["gemini-x:generateContent", "gemini-x:countTokens"]) {
    const response = await ask(`/v1beta/models/${path}`);
    expect(response.status).toBe(503);
    const told = (await response.json()) as { error: { details: { reason: string }[] } };
    expect(told.error.details[0]?.reason).toBe("service_unavailable");
    expect(JSON.stringify(told)).not.toContain("API key");
  }
});

test("R-ERR-4: what the vendor says of the customer's own request passes byte for byte", async () => {
  const told = '{"error": {"code": 400, "message": "no  contents", "status": "INVALID_ARGUMENT"}}';
  gateway.vendor.answer(() => ({ status: 400, body: told }));
  for (const path of ["gemini-x:generateContent", "gemini-x:countTokens"]) {
    const response = await ask(`/v1beta/models/${path}`);
    expect(response.status).toBe(400);
    expect(await response.text()).toBe(told);
  }
});

test("pitfall 7: a redirect is not followed", async () => {
  const headers = { location: "https://elsewhere.test/" };
  gateway.vendor.answer(() => ({ status: 302, headers, body: "" }));
  const response = await ask("/v1beta/models/gemini-x:generateContent", { redirect: "manual" });
  expect(response.status).toBe(502);
  expect(response.headers.get("location")).toBeNull();
});

test("R-MDL-1: native calls reach only models of this vendor, of the key, and of the right type", async () => {
  const only = await gateway.customer({ models: ["our/name"] });
  const denied = await ask("/v1beta/models/gemini-x:generateContent", {
    headers: { "x-goog-api-key": only.key, "x-request-id": "native-8" },
  });
  expect(denied.status).toBe(403);
  expect((await gateway.call("native-8")).errorCode).toBe("access_denied");
  const unknown = await ask("/v1beta/models/nobody:generateContent");
  expect(unknown.status).toBe(404);
  const film = await ask("/v1beta/models/veo-x:generateContent");
  expect(film.status).toBe(400);
  expect(gateway.vendor.requests).toEqual([]);
});

test("402 before the vendor is called", async () => {
  const poor = await gateway.customer({ balanceNanos: 0n });
  const response = await ask("/v1beta/models/gemini-x:generateContent", {
    headers: { "x-goog-api-key": poor.key },
  });
  expect(response.status).toBe(402);
  expect(response.headers.get("x-should-retry")).toBe("false");
  expect(await response.json()).toMatchObject({
    error: {
      code: 402,
      status: "FAILED_PRECONDITION",
      details: [{ reason: "insufficient_balance" }],
    },
  });
  expect(gateway.vendor.requests).toEqual([]);
});

test.each(["{}", '{"error":{"code":500,"message":"internal","status":"INTERNAL"}}'])(
  "a reply of %s with status 200 passes free, and its record says that the vendor failed",
  async (reply) => {
    gateway.vendor.answer(() => ({ body: reply }));
    const id = `gemini-failed-${reply.length}`;
    const response = await ask("/v1beta/models/gemini-x:generateContent", {
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

describe.each([
  ["as events", "?alt=sse"],
  ["as an array", ""],
])("a stream %s that reports an error under status 200", (name, query) => {
  const error = JSON.stringify({
    error: { code: 500, message: "An internal error has occurred.", status: "INTERNAL" },
  });
  const stream = (texts: number): readonly string[] =>
    query === ""
      ? [...geminiArray.slice(0, texts + 1), `${texts === 0 ? "" : ",\n"}${error}`, "\n]"]
      : [...geminiEvents.slice(0, texts), `data: ${error}\r\n\r\n`];
  const headers =
    query === "" ? { "content-type": "application/json" } : { "content-type": "text/event-stream" };

  test.each([0, 1])("after %i texts passes, and its record says failed", async (texts) => {
    const events = stream(texts);
    gateway.vendor.answer(() => ({ headers, body: events }));
    const id = `gemini-stream-failed-${name}-${texts}`.replaceAll(" ", "-");
    const response = await ask(`/v1beta/models/gemini-x:streamGenerateContent${query}`, {
      headers: { "x-request-id": id },
    });
    const sent = events.join("");
    expect((await response.text()).replaceAll(/\s/g, "")).toBe(sent.replaceAll(/\s/g, ""));
    const call = await gateway.call(id);
    expect([call.ending, call.errorCode]).toEqual([CallEnding.UPSTREAM_FAILED, "upstream_error"]);
    expect((call.cost?.amountNanos ?? 0n) > 0n).toBe(texts > 0);
  });
});

test.each([
  ["an error", { event_type: "error", error: { code: "internal", message: "failed" } }],
  ["a status", { event_type: "interaction.status_update", status: "failed" }],
  ["its end", { event_type: "interaction.completed", interaction: { status: "failed" } }],
])(
  "a streamed interaction that fails by %s passes free, and its record says failed",
  async (name, event) => {
    const sent = `data: ${JSON.stringify(event)}\n\n`;
    const headers = { "content-type": "text/event-stream" };
    gateway.vendor.answer(() => ({ headers, body: sent }));
    const id = `interaction-failed-${name.replace(" ", "-")}`;
    const response = await ask("/v1beta/interactions", {
      body: JSON.stringify({ model: "gemini-x", input: "Hi", stream: true }),
      headers: { "x-request-id": id },
    });
    expect(await response.text()).toBe(sent);
    const call = await gateway.call(id);
    expect([call.ending, call.cost?.amountNanos ?? 0n]).toEqual([CallEnding.UPSTREAM_FAILED, 0n]);
  },
);

test.each([
  ["whole", "generateContent", "application/json", "{}"],
  ["whole", "generateContent", "application/json", '{"error":{"code":500,"message":"internal"}}'],
  [
    "streamed",
    "streamGenerateContent?alt=sse",
    "text/event-stream",
    'data: {"error":{"code":500,"message":"internal"}}\r\n\r\n',
  ],
])(
  "a %s reply of %s that fails under status 200 counts as a failure: the vendor is called again",
  async (form, method, type, failed) => {
    const good = form === "whole" ? geminiReply : geminiEvents.join("");
    const replies = [failed, good];
    const headers = { "content-type": type };
    gateway.vendor.answer(() => ({ headers, body: replies.shift() ?? "" }));
    const id = `gemini-again-${form}-${failed.length}`;
    const response = await ask(`/v1beta/models/gemini-again:${method}`, {
      headers: { "x-request-id": id },
    });
    expect(await response.text()).toBe(good);
    const call = await gateway.call(id);
    expect([call.ending, call.attempts[0]?.errorCode]).toEqual([
      CallEnding.COMPLETED,
      "upstream_error",
    ]);
    expect(call.cost?.amountNanos).toBe(costOf(geminiUsage));
  },
);
