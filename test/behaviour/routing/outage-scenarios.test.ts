/**
 * Sixteen ways in which a vendor fails, each with what a caller of chat completions gets. `served`:
 * the complete answer. `error`: a clear error, and never a part of an answer that looks complete.
 */
import { afterAll, beforeAll, beforeEach, expect, it } from "vitest";
import { newRequestId, useGateway } from "../harness.ts";
import {
  beginsStream,
  completes,
  event,
  refuses,
  type RoutingVendor,
  startVendor,
  usageEvent,
  type VendorAnswer,
  type VendorRequest,
} from "../../support/routing-vendor.ts";

let vendor: RoutingVendor;
beforeAll(async () => {
  vendor = await startVendor();
});
afterAll(() => vendor.close());
beforeEach(() => {
  vendor.requests.length = 0;
});

const once = (first: VendorAnswer): VendorAnswer => {
  let count = 0;
  return (request) => (count++ === 0 ? first : completes)(request);
};

const words = ["One", " two", " three", " four"];

/** Streams the answer, and does something else before one of its words. */
function streams(at: number, instead: (request: VendorRequest) => boolean): VendorAnswer {
  return (request) => {
    const { model, response } = request;
    beginsStream(request);
    for (const [index, content] of words.entries()) {
      if (index === at && instead(request)) return;
      response.write(event(model, { content }));
    }
    response.write(event(model, {}, "stop"));
    response.write(usageEvent(model));
    response.end("data: [DONE]\n\n");
  };
}

const cut = streams(2, ({ response }) => {
  setImmediate(() => response.destroy());
  return true;
});

const silent: VendorAnswer = () => {};
const lateHead: VendorAnswer = ({ response }) => {
  response.writeHead(200, { "content-type": "text/event-stream" }).flushHeaders();
};

interface Scenario {
  readonly answer: VendorAnswer;
  readonly result: "served" | "error";
  /** Requests at the first route. */
  readonly attempts: number;
  /** Whether the backup answers. */
  readonly isMoved: boolean;
}

const scenarios: Readonly<Record<string, Scenario>> = {
  "429 with retry-after: waits, and asks again": {
    answer: once(refuses(429, { "retry-after": "1" })),
    ...{ result: "served", attempts: 2, isMoved: false },
  },
  "429 without retry-after, each time": {
    answer: refuses(429),
    ...{ result: "served", attempts: 1, isMoved: true },
  },
  "500 once": {
    answer: once(refuses(500)),
    ...{ result: "served", attempts: 2, isMoved: false },
  },
  "503 each time": {
    answer: refuses(503),
    ...{ result: "served", attempts: 2, isMoved: true },
  },
  "a reset before the head": {
    answer: once(({ response }) => response.socket?.resetAndDestroy()),
    ...{ result: "served", attempts: 2, isMoved: false },
  },
  "no response at all: the silent route is not asked again": {
    answer: silent,
    ...{ result: "served", attempts: 1, isMoved: true },
  },
  "a first token that comes too late": {
    answer: lateHead,
    ...{ result: "served", attempts: 1, isMoved: true },
  },
  "a stream that is cut after content": {
    answer: cut,
    ...{ result: "error", attempts: 1, isMoved: false },
  },
  "a stream that stops after content": {
    answer: streams(2, () => true),
    ...{ result: "error", attempts: 1, isMoved: false },
  },
  "an event that is no JSON": {
    answer: streams(2, ({ response }) => {
      response.write('data: {"id": "c", "choices": [{"delta": {"content": \n\n');
      return false;
    }),
    ...{ result: "served", attempts: 1, isMoved: false },
  },
  "a stream without [DONE]": {
    answer: ({ model, response }) => {
      beginsStream({ model, response });
      for (const content of words) response.write(event(model, { content }));
      response.write(event(model, {}, "stop"));
      response.end(usageEvent(model));
    },
    ...{ result: "served", attempts: 1, isMoved: false },
  },
  "a request that is too long: the longer route takes it": {
    answer: refuses(400, {}, "context_length_exceeded"),
    ...{ result: "served", attempts: 1, isMoved: true },
  },
  "content that the vendor rejects": {
    answer: refuses(400, {}, "content_policy_violation"),
    ...{ result: "error", attempts: 1, isMoved: false },
  },
};

const names = [...Object.keys(scenarios), "prefill", "flap"];
const modelOf = (name: string): string => `m${names.indexOf(name)}`;

const fixture = useGateway(() => {
  const { baseUrl } = vendor;
  const timeouts = { connectMs: 2_000, firstByteMs: 5_000, idleMs: 500, firstContentMs: 500 };
  const breaker = { failures: 5, windowMs: 30_000, cooldownMs: 50, singleRoute: "try" } as const;
  return {
    vendors: {
      primary: { baseUrl, apiKey: "sk-primary", timeouts, breaker },
      backup: { baseUrl, apiKey: "sk-backup" },
    },
    models: Object.fromEntries(
      names.map((name) => [
        modelOf(name),
        {
          routes: [
            { vendor: "primary", model: modelOf(name), maxContext: 8_000 },
            { vendor: "backup", model: "ok" },
          ],
        },
      ]),
    ),
  };
});

/** Returns a careful client's reading of a stream: its text, or the error that it reports. */
async function read(model: string) {
  const id = newRequestId();
  const body = {
    ...{ model, stream: true, stream_options: { include_usage: true } },
    messages: [{ role: "user", content: `Count. ${id}` }],
  };
  const reply = await fixture.chat(body, { "x-request-id": id });
  const text: string[] = [];
  let error: unknown;
  let usage: unknown;
  for (const line of reply.body.toString().split("\n")) {
    if (reply.status !== 200) error ??= JSON.parse(reply.body.toString());
    if (!line.startsWith("data: {")) continue;
    const chunk = parsed(line.slice(6));
    if (chunk?.error !== undefined) error = chunk.error;
    usage = chunk?.usage ?? usage;
    text.push(chunk?.choices?.[0]?.delta?.content ?? "");
  }
  return { id, status: reply.status, text: text.join(""), error, usage, headers: reply.headers };
}

interface Chunk {
  readonly error?: unknown;
  readonly usage?: unknown;
  readonly choices?: readonly { readonly delta?: { readonly content?: string } }[];
}

function parsed(text: string): Chunk | undefined {
  try {
    return JSON.parse(text) as Chunk;
  } catch {
    return undefined;
  }
}

function primaries(name: string): number {
  return vendor.requests.filter(({ model }) => model === modelOf(name)).length;
}

const isComplete = (text: string): boolean => text === "Hello" || text === words.join("");

it.each(Object.entries(scenarios))("routing survives this outage: %s", async (name, scenario) => {
  vendor.answer = (request) => (request.model === "ok" ? completes : scenario.answer)(request);
  const { status, text, error, usage, headers } = await read(modelOf(name));
  expect(primaries(name)).toBe(scenario.attempts);
  expect(vendor.requests.some(({ model }) => model === "ok")).toBe(scenario.isMoved);
  if (scenario.result === "error") {
    expect(error).toBeDefined();
    return;
  }
  expect([status, error, isComplete(text)]).toEqual([200, undefined, true]);
  expect(usage).toBeDefined();
  expect(headers["x-uas-route"]).toBe(scenario.isMoved ? "backup/ok" : `primary/${modelOf(name)}`);
});

it("a stream that was cut is not continued by a vendor that would refuse to: the caller learns of the cut", async () => {
  vendor.answer = (request) => (request.model === "ok" ? refuses(400) : cut)(request);
  const { error, id } = await read(modelOf("prefill"));
  expect(error).toMatchObject({ code: "upstream_error" });
  expect(vendor.requests).toHaveLength(1);
  const call = await fixture.gateway.call(id);
  expect(call.cost?.amountNanos).toBeGreaterThan(0n);
  expect(call.usage?.outputTokens).toBeGreaterThan(0);
});

it("content that the vendor rejects: the caller learns the vendor's reason, and is charged nothing", async () => {
  const name = "content that the vendor rejects";
  vendor.answer = refuses(400, {}, "content_policy_violation");
  const { status, error, id } = await read(modelOf(name));
  expect(status).toBe(400);
  expect(error).toMatchObject({ error: { code: "content_policy_violation" } });
  expect((await fixture.gateway.call(id)).cost?.amountNanos).toBe(0n);
});

it.each(["a stream that is cut after content", "a stream that stops after content"])(
  "%s: the next call of the model is served, by the same vendor",
  async (name) => {
    const { answer } = scenarios[name] ?? {};
    let count = 0;
    vendor.answer = (request) => (count++ === 0 && answer ? answer : completes)(request);
    expect((await read(modelOf(name))).error).toMatchObject({
      code: expect.stringMatching(/^upstream_(error|timeout)$/),
    });
    const { text, headers } = await read(modelOf(name));
    expect([text, headers["x-uas-route"]]).toEqual(["Hello", `primary/${modelOf(name)}`]);
  },
);

it("a vendor that is down and comes back: every call is served, and calls return to it", async () => {
  let isDown = true;
  vendor.answer = (request) =>
    (request.model !== "ok" && isDown ? refuses(503) : completes)(request);
  for (let at = 0; at < 10; at++) expect((await read(modelOf("flap"))).text).toBe("Hello");
  isDown = false;
  await expect
    .poll(async () => (await read(modelOf("flap"))).headers["x-uas-route"])
    .toBe(`primary/${modelOf("flap")}`);
});

it("a call that another vendor served costs what its reply used, and names what failed", async () => {
  const name = "503 each time";
  vendor.answer = (request) => (request.model === "ok" ? completes : refuses(503))(request);
  const { id, usage } = await read(modelOf(name));
  expect(usage).toMatchObject({ prompt_tokens: 10, completion_tokens: 5 });
  const call = await fixture.gateway.call(id);
  expect(call).toMatchObject({ vendor: "backup", usage: { inputTokens: 10, outputTokens: 5 } });
  expect(new Set(call.attempts.map(({ vendor: failed }) => failed))).toEqual(new Set(["primary"]));
});
