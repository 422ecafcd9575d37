/**
 * Calls of tools as hosts of open models make them reach every client in a form that it takes
 * (R-TXT-1).
 */
import { describe, expect, it } from "vitest";
import { bodyOf, callsOf, list, type PerStyle, post, type Reply, textOf, toolsOf } from "./ask.ts";
import type { VendorStyle } from "./checks.ts";
import type { ClientStyle } from "./clients/client.ts";
import { aiRows, anthropicRows, openaiRows } from "./clients/rows.ts";
import { useMatrix, vendors } from "./matrix.ts";

const matrix = useMatrix();
const styles: readonly ClientStyle[] = ["chat", "responses", "messages"];

interface Pair {
  readonly style: ClientStyle;
  readonly vendor: VendorStyle;
}

const pairs = styles.flatMap((style) => vendors.map(({ vendor }): Pair => ({ style, vendor })));

function send({ style, vendor }: Pair, text: string, more: PerStyle = {}) {
  const target = { origin: matrix.gateway.url, key: matrix.key };
  const members = { ...toolsOf[style], ...more[style] };
  return post(style, target, bodyOf(style, `m-${vendor}`, text, { [style]: members }));
}

describe("calls as hosts of open models make them", () => {
  const first = { role: "user", content: "call two tools, odd ids" };

  /** The reply's calls with a result for each, as a client of the style sends them back. */
  function answered(style: ClientStyle, reply: Reply): PerStyle {
    const results = callsOf(style, reply).map(({ id }, at) => ({ id, text: `result ${at}` }));
    const outputs = results.map(({ id, text }) => ({
      type: "function_call_output",
      call_id: id,
      output: text,
    }));
    const blocks = results.map(({ id, text }) => ({
      type: "tool_result",
      tool_use_id: id,
      content: text,
    }));
    const tools = results.map(({ id, text }) => ({
      role: "tool",
      tool_call_id: id,
      content: text,
    }));
    const { choices, output, content } = reply.json;
    return {
      [style]: {
        chat: { messages: [first, list(choices)[0]?.["message"], ...tools] },
        responses: { input: [first, ...list(output), ...outputs] },
        messages: {
          messages: [first, { role: "assistant", content }, { role: "user", content: blocks }],
        },
      }[style],
    };
  }

  it.each(pairs)("a $style client may send them on to $vendor", async ({ style, vendor }) => {
    const reply = await send({ style, vendor: "chat" }, "call two tools, odd ids");
    const calls = callsOf(style, reply);
    expect(calls).toHaveLength(2);
    if (style === "messages") {
      for (const { id } of calls) expect(id).toMatch(/^[a-zA-Z0-9_-]+$/);
    }
    // At another vendor of the client's own style, ids pass as they are: that one may refuse them.
    if (style === vendor && style !== "chat") return;
    const next = await send({ style, vendor }, "", answered(style, reply));
    expect(textOf(style, next)).toBe("Tools said: result 0 | result 1");
  });

  it("have an empty object where they have no arguments", async () => {
    const text = "call weather, empty arguments";
    const asked = await send({ style: "messages", vendor: "chat" }, text);
    expect(list(asked.json["content"])).toMatchObject([{ name: "weather", input: {} }]);
    const item = await send({ style: "responses", vendor: "chat" }, text);
    const call = list(item.json["output"]).find(({ type }) => type === "function_call");
    expect(call).toMatchObject({ name: "weather", arguments: "{}" });
  });

  it.each([...openaiRows, ...anthropicRows, ...aiRows])(
    "may come in turn, piece by piece: $name",
    async ({ make }) => {
      const client = make({ origin: matrix.gateway.url, key: matrix.key, model: "m-chat" });
      const answer = await client.loop({ text: "call two tools, interleaved", stream: true });
      expect(answer.text).toBe("Tools said: 18 degrees in Bern | 12:00 in Paris");
    },
  );
});
