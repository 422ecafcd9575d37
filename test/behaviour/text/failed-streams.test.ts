/**
 * Vendors that report a failure with a successful status: free, and another route is tried
 * (R-MON-8, R-RTE-2).
 */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { retryDefault } from "../../../src/config/routing.ts";
import {
  type RoutingVendor,
  startVendor,
  type VendorAnswer,
} from "../../support/routing-vendor.ts";
import { newRequestId, useGateway } from "../harness.ts";

const vendors: { bad?: RoutingVendor; good?: RoutingVendor } = {};
beforeAll(async () => {
  vendors.bad = await startVendor();
  vendors.good = await startVendor();
});
afterAll(async () => {
  await vendors.bad?.close();
  await vendors.good?.close();
});
beforeEach(() => {
  for (const each of Object.values(vendors)) each.requests.length = 0;
});

const styles = [
  ["chat", "chat-completions", "openai-compatible"],
  ["responses", "responses", "openai"],
  ["messages", "messages", "anthropic"],
] as const;

const fixture = useGateway(() => ({
  vendors: {
    single: {
      kind: "openai-compatible",
      baseUrl: vendors.bad?.baseUrl ?? "",
      apiKey: "sk-operators",
      maxInFlight: 1,
    },
    ...Object.fromEntries(
      styles.flatMap(([style, dialect, kind]) =>
        (["bad", "good"] as const).map((name) => [
          `${style}-${name}`,
          {
            kind,
            baseUrl: vendors[name]?.baseUrl ?? "",
            apiKey: "sk-operators",
            dialects: [dialect],
          },
        ]),
      ),
    ),
  },
  models: {
    single: { routes: [{ vendor: "single", model: "m" }] },
    ...Object.fromEntries(
      styles.flatMap(([style]) => [
        [`${style}-alone`, { routes: [{ vendor: `${style}-bad`, model: "m" }] }],
        [
          `${style}-two`,
          {
            routes: [
              { vendor: `${style}-bad`, model: "m" },
              { vendor: `${style}-good`, model: "m", priority: 1 },
            ],
            retry: retryDefault,
          },
        ],
      ]),
    ),
  },
}));

const paths = {
  chat: "/v1/chat/completions",
  responses: "/v1/responses",
  messages: "/v1/messages",
};

function ask(style: keyof typeof paths, model: string, stream: boolean, id: string) {
  const body =
    style === "responses"
      ? { model, input: "Hello", stream }
      : { model, max_tokens: 50, messages: [{ role: "user", content: "Hello" }], stream };
  return fixture.send(paths[style], {
    body: JSON.stringify(body),
    headers: { "x-request-id": id },
  });
}

const events =
  (...all: readonly (readonly [name: string, json: unknown])[]): VendorAnswer =>
  ({ response }) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.end(
      all.map(([name, json]) => `event: ${name}\ndata: ${JSON.stringify(json)}\n\n`).join(""),
    );
  };
const whole =
  (json: unknown): VendorAnswer =>
  ({ response }) => {
    response.writeHead(200, { "content-type": "application/json" });
    response.end(JSON.stringify(json));
  };

const oops = { message: "oops", type: "server_error", code: "server_error" };
const streamed: Readonly<Record<keyof typeof paths, VendorAnswer>> = {
  chat: events(["message", { error: oops }]),
  responses: events([
    "error",
    { type: "error", code: "server_error", message: "oops", param: null },
  ]),
  messages: events(["error", { type: "error", error: { type: "api_error", message: "oops" } }]),
};
const wholes: Readonly<Record<keyof typeof paths, VendorAnswer>> = {
  chat: whole({ error: oops }),
  responses: whole({ id: "resp_1", status: "failed", error: oops, output: [] }),
  messages: whole({ type: "error", error: { type: "api_error", message: "oops" } }),
};
const good: Readonly<Record<keyof typeof paths, VendorAnswer>> = {
  chat: whole({
    id: "c",
    object: "chat.completion",
    choices: [{ index: 0, message: { role: "assistant", content: "Fine" }, finish_reason: "stop" }],
    usage: { prompt_tokens: 5, completion_tokens: 1, total_tokens: 6 },
  }),
  responses: whole({
    id: "resp_2",
    status: "completed",
    output: [
      { type: "message", role: "assistant", content: [{ type: "output_text", text: "Fine" }] },
    ],
    usage: { input_tokens: 5, output_tokens: 1, total_tokens: 6 },
  }),
  messages: whole({
    type: "message",
    role: "assistant",
    content: [{ type: "text", text: "Fine" }],
    stop_reason: "end_turn",
    usage: { input_tokens: 5, output_tokens: 1 },
  }),
};

describe("a failure with a status of success, before any content", () => {
  const rows = styles.flatMap(([vendor]) =>
    styles.flatMap(([caller]) => [true, false].map((stream) => [caller, vendor, stream] as const)),
  );
  it.each(rows)(
    "costs nothing: %s caller, %s vendor, stream: %s",
    async (caller, vendor, stream) => {
      if (vendors.bad) vendors.bad.answer = (stream ? streamed : wholes)[vendor];
      const id = newRequestId();
      const reply = await ask(caller, `${vendor}-alone`, stream, id);
      expect(reply.body.toString()).toMatch(/error|failed/);
      const call = await fixture.gateway.call(id);
      expect(call.cost?.amountNanos ?? 0n).toBe(0n);
      expect(call.usage?.outputTokens ?? 0).toBe(0);
    },
  );

  it.each(rows)(
    "is answered by the next route: %s caller, %s vendor, stream: %s",
    async (caller, vendor, stream) => {
      if (vendors.bad) vendors.bad.answer = (stream ? streamed : wholes)[vendor];
      if (vendors.good) vendors.good.answer = good[vendor];
      const reply = await ask(caller, `${vendor}-two`, stream, newRequestId());
      expect([reply.status, reply.body.toString()]).toEqual([200, expect.stringContaining("Fine")]);
      expect(vendors.good?.requests).toHaveLength(1);
    },
  );

  it("gives the vendor's slot back, if no other route takes the call", async () => {
    if (vendors.bad) vendors.bad.answer = streamed.chat;
    for (const stream of [true, true]) await ask("chat", "single", stream, newRequestId());
    if (vendors.bad) vendors.bad.answer = good.chat;
    const reply = await ask("chat", "single", false, newRequestId());
    expect([reply.status, reply.body.toString()]).toEqual([200, expect.stringContaining("Fine")]);
  });
});
