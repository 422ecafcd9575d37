/**
 * A reply that the gateway ends before its vendor: valid wherever it stops, with all that was
 * delivered (R-MON-5).
 */
import { create } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { GenerationSchema } from "../../../../gen/uas/inference/v1/generate_pb.ts";
import { UsageSchema } from "../../../../gen/uas/type/v1/usage_pb.ts";
import type { StreamRelay } from "../../../../src/dialect/dialect.ts";
import { chatCompletions } from "../../../../src/dialect/chat-completions/dialect.ts";
import { gemini } from "../../../../src/dialect/gemini/dialect.ts";
import { ToolRestorer } from "../../../../src/dialect/tools/tool-restorer.ts";
import { asReported, TranslatedStream } from "../../../../src/dialect/translate.ts";
import type { Caller, Vendor } from "./translation.ts";
import { accumulatedOf, delivered, stopWords } from "../../../support/sdk-streams.ts";
import { dialects, vendorEvents } from "./vendor-events.ts";

const usage = create(UsageSchema, { inputTokens: 30, outputTokens: 12 });

function open(caller: Caller, vendor: Vendor): StreamRelay {
  if (caller === vendor) {
    const options = { publicModel: "public", hideUsage: false, choices: 1 };
    return dialects[caller].relayStream(options);
  }
  return new TranslatedStream({
    vendor: vendor === "gemini" ? gemini : dialects[vendor],
    caller: dialects[caller],
    tools: new ToolRestorer([]),
    charged: asReported,
    options: {
      model: "public",
      callId: "0123456789abcdef0123456789abcdef",
      created: 1_760_000_000,
      now: () => 1_760_000_009,
      inputTokens: 30,
      generation: create(GenerationSchema, { model: "public", includeUsage: true, stream: true }),
      onDropped: () => {},
    },
  });
}

const callers: readonly Caller[] = ["chat", "responses", "messages"];
const vendors: readonly Vendor[] = ["chat", "responses", "messages", "gemini"];
const ways = callers.flatMap((caller) => vendors.map((vendor) => ({ caller, vendor })));
const texts = ["think, then greet", "call two tools", "think, then call get_weather"];

describe.each(ways)("$caller from $vendor", ({ caller, vendor }) => {
  it.each(texts)(
    "a reply that is stopped after any event ends as its style says: %s",
    async (text) => {
      const events = await vendorEvents(vendor, text);
      let stops = 0;
      // The first events announce the reply; nothing can be used up before them.
      for (let count = 2; count <= events.length; count++) {
        const relay = open(caller, vendor);
        const passed = events.slice(0, count).map((each) => relay.push([Buffer.from(each)]));
        if (relay.finished) break;
        const before = Buffer.concat(passed).toString();
        const after = relay.stop(usage).toString();
        const got = await accumulatedOf(caller, before + after);
        const { input, ...rest } = delivered(caller, before);
        expect(got, `after ${count} events`).toMatchObject(rest);
        // Deltas that waited for another part arrive with the stop, and so does the empty object of
        // a call without input, if clients parse it.
        expect(got.inputs.join("")).toBe(delivered(caller, before + after).input);
        expect(got.inputs.join("").startsWith(input)).toBe(true);
        expect(got).toMatchObject({ stop: stopWords[caller], outputTokens: 12 });
        expect(before + after).not.toContain("vendor-model");
        stops++;
      }
      expect(stops).toBeGreaterThan(vendor === "gemini" ? 0 : 3);
    },
  );
});

describe("several choices in one stream", () => {
  const chunk = (index: number, delta: object, finish: string | null = null): Buffer =>
    Buffer.from(
      `data: ${JSON.stringify({ id: "c", object: "chat.completion.chunk", created: 1, model: "m", choices: [{ index, delta, finish_reason: finish }] })}\n\n`,
    );

  it("each get their own end, but for those that have theirs", () => {
    const relay = chatCompletions.relayStream({
      publicModel: undefined,
      hideUsage: true,
      choices: 3,
    });
    relay.push([chunk(0, { role: "assistant", content: "a" }), chunk(1, { role: "assistant" })]);
    relay.push([chunk(0, {}, "stop"), chunk(1, { content: "b" })]);
    const events = relay.stop(usage).toString().split("\n\n").filter(Boolean);
    const head = { id: "c", object: "chat.completion.chunk", created: 1, model: "m" };
    const end = (index: number, delta: object) => ({
      ...head,
      choices: [{ index, delta, logprobs: null, finish_reason: "length" }],
    });
    expect(events.pop()).toBe("data: [DONE]");
    expect(events.map((each) => JSON.parse(each.slice("data: ".length)))).toEqual([
      end(1, {}),
      end(2, { role: "assistant", content: "" }),
    ]);
  });
});
