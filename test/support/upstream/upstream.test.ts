/**
 * The simulated vendor is itself checked with the official SDK: what passes here is its wire style.
 */
import OpenAI, { APIConnectionError, APIError } from "openai";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { answer, failure, hang, reset } from "./behaviour.ts";
import { startUpstream, type Upstream } from "./upstream.ts";

let upstream: Upstream;
let openai: OpenAI;
const ask = { model: "vendor-model", messages: [{ role: "user" as const, content: "hi" }] };

beforeAll(async () => {
  upstream = await startUpstream();
  openai = new OpenAI({ apiKey: upstream.secret, baseURL: upstream.baseUrl, maxRetries: 0 });
});
afterAll(() => upstream.close());
beforeEach(() => upstream.clear());

describe("answers", () => {
  it("gives a reply with usage", async () => {
    const reply = await openai.chat.completions.create(ask);
    expect(reply.choices[0]?.message.content).toBe("Hello there!");
    expect(reply.usage?.total_tokens).toBe(18);
  });

  it("streams what the SDK's helper puts together, however the bytes are cut", async () => {
    for (const pieceBytes of [1, 7, 1000]) {
      upstream.script(answer({ text: ["Grüße ", "🌍", "!"], newline: "\r\n", pieceBytes }));
      const stream = openai.chat.completions.stream({
        ...ask,
        stream_options: { include_usage: true },
      });
      const final = await stream.finalChatCompletion();
      expect(final.choices[0]?.message.content).toBe("Grüße 🌍!");
      expect(final.usage?.completion_tokens).toBe(7);
    }
  });

  it("reports usage only on request", async () => {
    const stream = await openai.chat.completions.create({ ...ask, stream: true });
    for await (const chunk of stream) expect(chunk).not.toHaveProperty("usage");
  });

  it("makes parallel tool calls in indexed deltas", async () => {
    const toolCalls = [
      { id: "call_a", name: "weather", arguments: '{"city":"Bern"}' },
      { id: "call_b", name: "weather", arguments: '{"city":"Köln"}' },
    ];
    upstream.script(answer({ text: [], toolCalls }));
    const final = await openai.chat.completions.stream(ask).finalChatCompletion();
    const calls = final.choices[0]?.message.tool_calls ?? [];
    expect(calls.map((call) => call.type === "function" && call.function.arguments)).toEqual(
      toolCalls.map((call) => call.arguments),
    );
  });
});

describe("failures", () => {
  it.each([
    ["an unknown model", { model: "other" }, 404],
    ["no messages", { messages: [] }, 400],
    ["max_tokens below 1", { max_tokens: 0 }, 400],
    ["stream_options without stream", { stream_options: {} }, 400],
    ["a member of the platform", { modelKey: "x" }, 400],
    [
      "an orphan tool message",
      { messages: [{ role: "tool", tool_call_id: "x", content: "" }] },
      400,
    ],
  ])("the simulated vendor refuses %s", async (_name, change, status) => {
    const error = await caught({ ...ask, ...change });
    expect(error).toBeInstanceOf(APIError);
    expect((error as APIError).status).toBe(status);
  });

  it("refuses a foreign credential, and reports a client's key as a violation", async () => {
    const other = await startUpstream();
    const client = new OpenAI({ apiKey: "uas_x", baseURL: other.baseUrl, maxRetries: 0 });
    await expect(client.chat.completions.create(ask)).rejects.toThrow(/401/);
    expect(other.violations).toHaveLength(1);
    await other.close();
  });

  it("the simulated vendor fails as scripted", async () => {
    upstream.script(failure(503, { message: "busy" }, { "retry-after": "7" }), reset);
    expect(await caught(ask)).toMatchObject({ status: 503 });
    expect(await caught(ask)).toBeInstanceOf(APIConnectionError);
  });

  it("notices when the caller leaves", async () => {
    upstream.script(hang);
    const leave = new AbortController();
    const running = openai.chat.completions.create(ask, { signal: leave.signal }).catch(() => {});
    const request = await upstream.request(1);
    leave.abort();
    expect(await request.left).toBe(true);
    await running;
  });

  it("cuts a stream inside an event", async () => {
    upstream.script(answer({ cutAfter: 2, insideEvent: true, ending: "destroy" }));
    const read = async (): Promise<number> => {
      let chunks = 0;
      const stream = await openai.chat.completions.create({ ...ask, stream: true });
      for await (const chunk of stream) chunks += chunk.choices.length;
      return chunks;
    };
    await expect(read()).rejects.toThrow();
  });
});

it("saw nothing that a vendor must not see", () => {
  expect(upstream.violations).toEqual([]);
});

function caught(body: unknown): Promise<unknown> {
  return openai.chat.completions.create(body as typeof ask).then(
    () => undefined,
    (error: unknown) => error,
  );
}
