import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { Dialect } from "../../../gen/uas/http/v1/http_pb.ts";
import { servedKinds, vendorKinds } from "../../../src/provider/index.ts";
import type { VendorCall } from "../../../src/provider/vendor.ts";
import { type Arrived, type Listener, listen, vendorCall, vendorConfig } from "./listener.ts";

let listener: Listener;

beforeAll(async () => {
  listener = await listen(() => ({ body: ["{}"] }));
});
beforeEach(() => {
  listener.requests.length = 0;
});
afterAll(() => listener.close());

/** Returns the request that arrives at a vendor of a kind, at a base address, for a call. */
async function arrivedOf(
  kind: string,
  base: string,
  call: Partial<VendorCall>,
): Promise<Arrived | undefined> {
  const config = vendorConfig({ kind, baseUrl: `${listener.origin}${base}` });
  const vendor = vendorKinds[kind]?.create(config);
  const reply = await vendor?.exchange(vendorCall(call));
  expect(reply?.status).toBe(200);
  expect((await reply?.body.whole(100))?.toString()).toBe("{}");
  await vendor?.close();
  return listener.requests.at(-1);
}

const chat = Dialect.CHAT_COMPLETIONS;
const { RESPONSES: responses, MESSAGES: messages, GEMINI: gemini } = Dialect;

describe("a call goes to the address of its style", () => {
  it.each([
    ["openai", "/v1", { dialect: chat }, "/v1/chat/completions"],
    ["openai", "/v1/", { dialect: responses, query: "a=b" }, "/v1/responses?a=b"],
    [
      "openai-compatible",
      "/api/v3",
      { dialect: chat, query: "x=1" },
      "/api/v3/chat/completions?x=1",
    ],
    ["anthropic", "", { dialect: messages, query: "beta=true" }, "/v1/messages?beta=true"],
    ["anthropic", "/v1", { dialect: messages }, "/v1/messages"],
    ["anthropic", "/proxy/v1/", { dialect: messages }, "/proxy/v1/messages"],
    ["anthropic", "/anthropic", { dialect: messages }, "/anthropic/v1/messages"],
    ["gemini", "", { dialect: gemini }, "/v1beta/models/model-1:generateContent"],
    [
      "gemini",
      "/v1beta",
      { dialect: gemini, stream: true, query: "beta=true" },
      "/v1beta/models/model-1:streamGenerateContent?alt=sse",
    ],
    [
      "gemini",
      "",
      { dialect: gemini, model: "tunedModels/my own?" },
      "/v1beta/tunedModels/my%20own%3F:generateContent",
    ],
  ] as const)(
    "a call to %s at base path %j with %j goes to the address of its style",
    async (kind, base, call, url) => {
      const body = [Buffer.from('{"a":'), Buffer.from("1}")];
      const arrived = await arrivedOf(kind, base, { ...call, body });
      expect(arrived).toMatchObject({ method: "POST", url, body: '{"a":1}' });
      expect(arrived?.headers).toMatchObject({ "content-type": "application/json" });
      expect(arrived?.headers["content-length"]).toBe("7");
    },
  );

  it("refuses a style that its kind does not speak, and sends nothing", () => {
    const { openai } = vendorKinds;
    const vendor = openai?.create(vendorConfig({ baseUrl: listener.origin }));
    expect(() => vendor?.exchange(vendorCall({ dialect: messages }))).toThrow(TypeError);
    expect(listener.requests).toEqual([]);
  });
});

describe("the credential goes where the vendor looks for it, and nowhere else", () => {
  it.each([
    ["openai", chat, "authorization", "Bearer sk-operators-own"],
    ["openai-compatible", chat, "authorization", "Bearer sk-operators-own"],
    ["anthropic", messages, "x-api-key", "sk-operators-own"],
    ["gemini", gemini, "x-goog-api-key", "sk-operators-own"],
  ] as const)(
    "the credential goes where this vendor looks for it, and nowhere else: %s",
    async (kind, dialect, name, value) => {
      const arrived = await arrivedOf(kind, "", { dialect, headers: { [name]: "the caller's" } });
      expect(arrived?.headers[name]).toBe(value);
      const rest = Object.entries(arrived?.headers ?? {}).filter(([each]) => each !== name);
      expect(JSON.stringify([rest, arrived?.url])).not.toContain("sk-operators-own");
    },
  );

  it("sends none where none is configured", async () => {
    const baseUrl = listener.origin;
    const config = vendorConfig({ kind: "openai-compatible", baseUrl, apiKey: undefined });
    const vendor = vendorKinds["openai-compatible"]?.create(config);
    await vendor?.exchange(vendorCall({}));
    await vendor?.close();
    expect(listener.requests.at(-1)?.headers).not.toHaveProperty("authorization");
  });
});

describe("anthropic's version", () => {
  it("is 2023-06-01 where the call names none", async () => {
    const arrived = await arrivedOf("anthropic", "", { dialect: messages });
    expect(arrived?.headers).toMatchObject({ "anthropic-version": "2023-06-01" });
    expect(arrived?.headers).not.toHaveProperty("anthropic-beta");
  });

  it("is the call's own, and its betas go with it", async () => {
    const headers = { "anthropic-version": "2026-10-21", "anthropic-beta": "a-1,b-2" };
    const arrived = await arrivedOf("anthropic", "", { dialect: messages, headers });
    expect(arrived?.headers).toMatchObject(headers);
  });
});

describe("what a vendor speaks", () => {
  const spoken = (kind: string, dialects?: readonly string[]): Dialect[] => {
    const vendor = vendorKinds[kind]?.create(vendorConfig({ kind, dialects }));
    return [...(vendor?.dialects ?? [])];
  };

  it("is what its kind speaks, best first", () => {
    expect(spoken("openai")).toEqual([responses, chat]);
    expect(spoken("openai-compatible")).toEqual([chat]);
    expect(spoken("anthropic")).toEqual([messages]);
    expect(spoken("gemini")).toEqual([gemini]);
  });

  it("is restricted by its configuration", () => {
    expect(spoken("openai", ["chat-completions"])).toEqual([chat]);
    expect(spoken("openai", ["responses"])).toEqual([responses]);
    expect(spoken("openai", [])).toEqual([]);
  });

  it("has the words that the configuration knows", () => {
    const words = (kind: string): unknown => servedKinds.get(kind)?.dialects;
    expect(words("openai")).toEqual(["responses", "chat-completions"]);
    expect(words("anthropic")).toEqual(["messages"]);
    expect(words("gemini")).toEqual(["gemini"]);
  });
});
