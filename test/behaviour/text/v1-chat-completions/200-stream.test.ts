/** POST /v1/chat/completions, streams. */
import { describe, expect, it } from "vitest";
import { UsageSource } from "../../../../gen/uas/type/v1/usage_pb.ts";
import { answer } from "../../../support/upstream/behaviour.ts";
import { ask, dataOf, newRequestId, publicModel, useGateway } from "../../harness.ts";

const fixture = useGateway();
const text = ["Grüße", " 🌍", ', "you"', " – 2.50"];

it("streams to the SDK, under the public model name", async () => {
  fixture.upstream.script(answer({ text, pieceBytes: 3 }));
  const stream = await fixture.openai.chat.completions.create({ ...ask, stream: true });
  let all = "";
  for await (const chunk of stream) {
    expect(chunk.model).toBe(publicModel);
    expect(chunk).not.toHaveProperty("usage");
    all += chunk.choices[0]?.delta.content ?? "";
  }
  expect(all).toBe(text.join(""));
});

it("the stream satisfies the SDK's stream helper", async () => {
  fixture.upstream.script(answer({ text, comments: true, newline: "\r\n" }));
  const stream = fixture.openai.chat.completions.stream(ask);
  expect((await stream.finalChatCompletion()).choices[0]?.message.content).toBe(text.join(""));
});

it("reasoning and unknown members pass in a stream", async () => {
  fixture.upstream.script(answer({ reasoning: ["hm", "…"], extra: { x_vendor: { deep: 1 } } }));
  const reply = await fixture.chat({ ...ask, stream: true });
  expect(reply.body.toString()).toContain('"reasoning_content":"…"');
  expect(reply.body.toString()).toContain('"x_vendor":{"deep":1}');
});

describe("usage", () => {
  it("is requested from the vendor, and hidden from a client that did not request it", async () => {
    const id = newRequestId();
    const reply = await fixture.chat({ ...ask, stream: true }, { "x-request-id": id });
    expect(fixture.upstream.last().json?.stream_options).toEqual({ include_usage: true });
    expect(reply.body.toString()).not.toContain("usage");
    expect(dataOf(reply.body).at(-1)).toBe("[DONE]");
    const call = await fixture.gateway.call(id);
    expect(call).toMatchObject({ stream: true, usageSource: UsageSource.UPSTREAM });
    expect(call.cost?.amountNanos).toBe(16_750n);
  });

  it("is passed to a client that asked", async () => {
    const stream = await fixture.openai.chat.completions.create({
      ...ask,
      stream: true,
      stream_options: { include_usage: true },
    });
    const usages: unknown[] = [];
    for await (const chunk of stream) usages.push(chunk.usage);
    expect(usages.at(-1)).toMatchObject({ total_tokens: 18 });
    expect(usages.slice(0, -1).every((usage) => usage === null)).toBe(true);
  });

  it("keeps the client's other stream options", async () => {
    const options = { include_obfuscation: false, include_usage: false };
    await fixture.chat({ ...ask, stream: true, stream_options: options });
    expect(fixture.upstream.last().json?.stream_options).toEqual({
      include_obfuscation: false,
      include_usage: true,
    });
  });

  it("is estimated where the vendor sends none", async () => {
    fixture.upstream.script(answer({ text: ["12345678"], usage: null }));
    const id = newRequestId();
    await fixture.chat({ ...ask, stream: true }, { "x-request-id": id });
    const call = await fixture.gateway.call(id);
    expect(call.usageSource).toBe(UsageSource.ESTIMATED);
    expect(call.usage?.outputTokens).toBeGreaterThanOrEqual(2);
    expect(call.usage?.outputTokens).toBeLessThanOrEqual(5);
  });
});

describe("the head", () => {
  it("forbids buffering and caching, and comes without compression", async () => {
    const id = newRequestId();
    const reply = await fixture.chat(
      { ...ask, stream: true },
      { "accept-encoding": "gzip, br", "x-request-id": id },
    );
    expect(reply.headers).toMatchObject({
      "content-type": expect.stringMatching(/^text\/event-stream/),
      "x-accel-buffering": "no",
      "cache-control": "no-cache",
      "x-request-id": id,
    });
    expect(reply.headers["content-encoding"]).toBeUndefined();
    expect(reply.headers["content-length"]).toBeUndefined();
    expect(reply.headers["set-cookie"]).toBeUndefined();
  });

  it("the head is out before the vendor's second event", async () => {
    fixture.upstream.script(answer({ cutAfter: 1, ending: "hang" }));
    const leave = new AbortController();
    const stream = await fixture.openai.chat.completions.create(
      { ...ask, stream: true },
      { signal: leave.signal },
    );
    const first = await stream[Symbol.asyncIterator]().next();
    expect(first.done).toBe(false);
    leave.abort();
    expect(await fixture.upstream.last().left).toBe(true);
  });
});

it("a stream ends without [DONE] where a compatible vendor sends none but says that it has finished", async () => {
  fixture.upstream.script(answer({ done: false }));
  const stream = fixture.openai.chat.completions.stream(ask);
  expect((await stream.finalChatCompletion()).choices[0]?.message.content).toBe("Hello there!");
});
