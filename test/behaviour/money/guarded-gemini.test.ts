/**
 * R-VND-3: files that Google keeps for the operator's key are out of reach through every style and
 * the typed door.
 */
import { createClient } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { Dialect } from "../../../gen/uas/http/v1/http_pb.ts";
import { MediaType, Role } from "../../../gen/uas/inference/v1/conversation_pb.ts";
import { InferenceService } from "../../../gen/uas/inference/v1/inference_service_pb.ts";
import { type NativeGateway, startGeminiGateway } from "../native/gemini-gateway.ts";
import { geminiReply } from "../native/gemini-replies.ts";
import type { Customer } from "../../support/gateway.ts";

let gateway: NativeGateway;
let customer: Customer;

beforeAll(async () => {
  gateway = await startGeminiGateway();
  customer = await gateway.customer();
});
beforeEach(() => {
  gateway.vendor.clear();
  gateway.vendor.answer(() => ({ body: geminiReply }));
});
afterAll(() => gateway.close());

const model = "gemini-x";
const kept = [
  "https:generativelanguage.googleapis.com/v1beta/files/abc77",
  "https:\\\\generativelanguage.googleapis.com/v1beta/files/abc77",
  "http://127.0.0.1:1/v1beta/files/abc77",
];
const open = "https://example.com/files/abc77.png";

const asks: Readonly<Record<string, (url: string) => { path: string; body: object }>> = {
  chat: (url) => ({
    path: "/v1/chat/completions",
    body: {
      model,
      messages: [{ role: "user", content: [{ type: "image_url", image_url: { url } }] }],
    },
  }),
  "chat, in a tool's answer": (url) => ({
    path: "/v1/chat/completions",
    body: {
      model,
      messages: [
        { role: "user", content: "Hi" },
        {
          role: "assistant",
          tool_calls: [{ id: "c", type: "function", function: { name: "f", arguments: "{}" } }],
        },
        { role: "tool", tool_call_id: "c", content: [{ type: "image_url", image_url: { url } }] },
      ],
    },
  }),
  responses: (url) => ({
    path: "/v1/responses",
    body: {
      model,
      input: [{ role: "user", content: [{ type: "input_image", image_url: url }] }],
    },
  }),
  "responses, a file": (url) => ({
    path: "/v1/responses",
    body: { model, input: [{ role: "user", content: [{ type: "input_file", file_url: url }] }] },
  }),
  messages: (url) => ({
    path: "/v1/messages",
    body: {
      model,
      max_tokens: 16,
      messages: [{ role: "user", content: [{ type: "image", source: { type: "url", url } }] }],
    },
  }),
  "messages, a document": (url) => ({
    path: "/v1/messages",
    body: {
      model,
      max_tokens: 16,
      messages: [{ role: "user", content: [{ type: "document", source: { type: "url", url } }] }],
    },
  }),
};

describe.each(Object.keys(asks))("%s", (name) => {
  const ask = async (url: string) => {
    const { path, body } = asks[name]?.(url) ?? { path: "/", body: {} };
    const headers = {
      authorization: `Bearer ${customer.key}`,
      "content-type": "application/json",
    };
    const init = { method: "POST", headers, body: JSON.stringify(body) };
    const response = await fetch(`${gateway.url}${path}`, init);
    return [response.status, await response.text()];
  };

  it.each(kept)("an address of what the vendor keeps is refused: %s", async (url) => {
    // Some styles take no odd address at all.
    const told =
      /data that the model's vendor stores|a bucket that is not shared|must be an http, https or gs/;
    expect(await ask(url)).toEqual([400, expect.stringMatching(told)]);
    expect(gateway.vendor.requests).toEqual([]);
  });

  it.each([open, "gs://shared-bucket/a file.png"])(
    "a public address is passed on: %s",
    async (url) => {
      expect(await ask(url)).toEqual([200, expect.any(String)]);
      expect(gateway.vendor.requests[0]?.body.toString()).toContain(JSON.stringify(url));
    },
  );

  it("a file of a bucket that is not shared is refused with the setting that shares it", async () => {
    const told = /file_buckets of the vendor in uas\.yaml/;
    expect(await ask("gs://shared-bucket-2/a.png")).toEqual([400, expect.stringMatching(told)]);
    expect(gateway.vendor.requests).toEqual([]);
  });
});

describe("typed calls", () => {
  const generate = (kind: object) => {
    const transport = createConnectTransport({ baseUrl: gateway.url, httpVersion: "1.1" });
    const generation = {
      model,
      conversation: { turns: [{ role: Role.USER, parts: [{ kind }] }] },
    };
    const headers = { authorization: `Bearer ${customer.key}` };
    return createClient(InferenceService, transport).generate({ generation } as never, { headers });
  };
  const media = (url: string) => ({
    case: "media",
    value: { type: MediaType.IMAGE, source: { case: "url", value: url } },
  });
  const own = (fileUri: string) => ({
    case: "opaque",
    value: { dialect: Dialect.GEMINI, type: "f", json: `{"file_data":{"file_uri":"${fileUri}"}}` },
  });

  it.each(kept)("a typed call refuses an address of what the vendor keeps: %s", async (url) => {
    await expect(generate(media(url))).rejects.toThrow("data that the model's vendor stores");
    expect(gateway.vendor.requests).toEqual([]);
  });

  it("a typed call refuses a part of Gemini's own with such an address", async () => {
    await expect(generate(own("files/abc77"))).rejects.toThrow(
      "data that the model's vendor stores",
    );
    expect(gateway.vendor.requests).toEqual([]);
    await generate(own(open));
    expect(gateway.vendor.requests.length).toBe(1);
  });
});
