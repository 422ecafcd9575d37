/**
 * Reasoning comes back to its vendor byte for byte, in whatever form it was shown (R-TXT-3), also
 * if the gateway keeps the conversation.
 */
import OpenAI from "openai";
import { describe, expect, it } from "vitest";
import { bodyOf, type Json, list, post, textOf } from "./ask.ts";
import type { VendorStyle } from "./checks.ts";
import { aiStored } from "./clients/ai-sdk.ts";
import { openaiChat } from "./clients/openai-chat.ts";
import { useMatrix, vendors } from "./matrix.ts";

const matrix = useMatrix();

const thinking = { thinking: { type: "enabled", budget_tokens: 1_024 } };
const encrypted = {
  reasoning: { effort: "high", summary: "auto" },
  include: ["reasoning.encrypted_content"],
};

function target() {
  return { origin: matrix.gateway.url, key: matrix.key };
}

/** Thinks at a vendor, sends all of it back, and counts what arrived. */
async function countFor(style: "responses" | "messages", vendor: VendorStyle, text: string) {
  const member = style === "responses" ? "input" : "messages";
  const settings = style === "responses" ? encrypted : thinking;
  const ask = async (turns: readonly Json[]) => {
    const body = bodyOf(style, `m-${vendor}`, "", { [style]: { ...settings, [member]: turns } });
    const reply = await post(style, target(), body);
    expect(reply.json["error"] ?? undefined).toBeUndefined();
    return reply;
  };
  const first = { role: "user", content: text };
  const reply = await ask([first]);
  const said =
    style === "responses"
      ? list(reply.json["output"])
      : [{ role: "assistant", content: reply.json["content"] }];
  const next = await ask([first, ...said, { role: "user", content: "count reasoning" }]);
  return textOf(style, next);
}

describe.each(["responses", "messages"] as const)("a %s client", (style) => {
  it.each(["responses", "messages", "gemini", "chat"] as const)(
    "reasoning of a %s vendor comes back through the client",
    async (vendor) => {
      expect(await countFor(style, vendor, "think")).toBe("1");
    },
  );

  it("reasoning comes back also where the vendor shows none of it", async () => {
    expect(await countFor(style, "messages", "think redacted")).toBe("1");
  });
});

it("a messages client that wants reasoning omitted gets none, and it comes back all the same", async () => {
  const settings = { thinking: { type: "adaptive", display: "omitted" } };
  for (const vendor of ["messages", "responses", "gemini"] as const) {
    const first = { role: "user", content: "think" };
    const ask = (messages: readonly Json[]) =>
      post(
        "messages",
        target(),
        bodyOf("messages", `m-${vendor}`, "", { messages: { ...settings, messages } }),
      );
    const reply = await ask([first]);
    const isShown = list(reply.json["content"]).some((block) => block["thinking"]);
    expect(isShown, vendor).toBe(false);
    const said = { role: "assistant", content: reply.json["content"] };
    const next = await ask([first, said, { role: "user", content: "count reasoning" }]);
    expect(textOf("messages", next), vendor).toBe("1");
  }
});

describe.each(vendors)("previous_response_id at $vendor", ({ vendor }) => {
  it("continues with all that was said, and thought", async () => {
    const openai = new OpenAI({
      apiKey: matrix.key,
      baseURL: `${matrix.gateway.url}/v1`,
      maxRetries: 0,
    });
    const settings = {
      model: `m-${vendor}`,
      reasoning: { effort: "high", summary: "auto" },
    } as const;
    const first = await openai.responses.create({ ...settings, input: "think" });
    const next = await openai.responses.create({
      ...settings,
      input: "count reasoning",
      previous_response_id: first.id,
    });
    expect(next.output_text).toBe("1");
    expect(next.previous_response_id).toBe(first.id);
  });
});

describe.each(vendors)("references to stored items at $vendor", ({ vendor }) => {
  it("mean what was said, called and thought", async () => {
    const client = aiStored({ ...target(), model: `m-${vendor}` });
    for (const stream of [false, true]) {
      const looped = await client.loop({ text: "think, call two tools", think: true, stream });
      expect(looped.text).toBe("Tools said: 18 degrees in Bern | 12:00 in Paris");
      const counted = await client.converse([
        { text: "think", think: true, stream },
        { text: "count reasoning", think: true, stream },
      ]);
      expect(counted.text).toBe("1");
    }
  });
});

it.each([
  ["messages", /"type":"thinking","thinking":"First I look.*","signature":"/],
  ["responses", /"encrypted_content":"gAAAA/],
  ["gemini", /"thoughtSignature":"gAAAA/],
] as const)("a chat client has it kept, and found by the tool call: %s", async (vendor, sent) => {
  for (const stream of [false, true]) {
    const client = openaiChat({ ...target(), model: `m-${vendor}` });
    const ask = { text: "think, then call weather", think: true, stream };
    expect((await client.loop(ask)).text).toBe("Tools said: 18 degrees in Bern");
    expect(matrix.upstream(vendor).last().body.toString()).toMatch(sent);
  }
});
