/** Features beyond text reach every vendor, or are refused or named (R-TXT-1, R-TXT-2). */
import { describe, expect, it } from "vitest";
import { bodyOf, callsOf, type Json, type PerStyle, post, textOf, toolsOf } from "./ask.ts";
import type { VendorStyle } from "./checks.ts";
import type { ClientStyle } from "./clients/client.ts";
import { useMatrix, vendors } from "./matrix.ts";

const matrix = useMatrix();
const styles: readonly ClientStyle[] = ["chat", "responses", "messages"];

interface Pair {
  readonly style: ClientStyle;
  readonly vendor: VendorStyle;
}

const pairs = styles.flatMap((style) => vendors.map(({ vendor }): Pair => ({ style, vendor })));

function send({ style, vendor }: Pair, text: string, more: PerStyle = {}, headers = {}) {
  const target = { origin: matrix.gateway.url, key: matrix.key };
  return post(style, target, bodyOf(style, `m-${vendor}`, text, more), headers);
}

function withTools(more: PerStyle): PerStyle {
  return Object.fromEntries(styles.map((style) => [style, { ...toolsOf[style], ...more[style] }]));
}

/** The last body that the vendor got. */
function sent(vendor: VendorStyle): string {
  return matrix.upstream(vendor).last().body.toString();
}

const pdf = Buffer.from("%PDF-1.4 simulated").toString("base64");
const png = Buffer.from("89504e470d0a1a0a0000000d49484452", "hex").toString("base64");

describe.each(pairs)("$style at $vendor", (pair) => {
  const { style, vendor } = pair;

  it("a tool that must be called is called, and none where none may", async () => {
    const forced = await send(
      pair,
      "say hello",
      withTools({
        chat: { tool_choice: { type: "function", function: { name: "clock" } } },
        responses: { tool_choice: { type: "function", name: "clock" } },
        messages: { tool_choice: { type: "tool", name: "clock" } },
      }),
    );
    expect(callsOf(style, forced).map(({ name }) => name)).toEqual(["clock"]);
    const none = await send(
      pair,
      "call weather",
      withTools({
        chat: { tool_choice: "none" },
        responses: { tool_choice: "none" },
        messages: { tool_choice: { type: "none" } },
      }),
    );
    expect(callsOf(style, none)).toEqual([]);
    expect(none.status).toBe(200);
  });

  it("one call at a time if requested, or a notice that this is impossible", async () => {
    const reply = await send(
      pair,
      "call two tools",
      withTools({
        chat: { parallel_tool_calls: false },
        responses: { parallel_tool_calls: false },
        messages: { tool_choice: { type: "auto", disable_parallel_tool_use: true } },
      }),
    );
    const isTold = /parallel_tool|tool_choice/.test(reply.headers.get("x-uas-dropped") ?? "");
    expect(callsOf(style, reply)).toHaveLength(isTold ? 2 : 1);
  });

  it("limits on output tokens arrive at the vendor", async () => {
    const reply = await send(pair, "echo settings", {
      chat: { max_completion_tokens: 77 },
      responses: { max_output_tokens: 77 },
      messages: { max_tokens: 77 },
    });
    expect(textOf(style, reply)).toMatch(/"(max_\w+|maxOutputTokens)":77/);
  });

  it.skipIf(style === "responses")(
    "stop sequences arrive, or the gateway applies them",
    async () => {
      const reply = await send(pair, "echo settings", {
        chat: { stop: ["END"] },
        messages: { stop_sequences: ["END"] },
      });
      if (vendor === "responses") {
        const stopped = await send(pair, "say hello", {
          chat: { stop: ["never", " there"] },
          messages: { stop_sequences: ["never", " there"] },
        });
        expect(textOf(style, stopped)).toBe("Hello");
        const end = style === "messages" ? '"stop_sequence":" there"' : '"finish_reason":"stop"';
        expect(JSON.stringify(stopped.json)).toContain(end);
      } else expect(textOf(style, reply)).toContain('["END"]');
    },
  );

  it("a document arrives byte for byte", async () => {
    const data = `data:application/pdf;base64,${pdf}`;
    const text = { text: "say hello" };
    const reply = await send(pair, "", {
      chat: {
        messages: [
          {
            role: "user",
            content: [
              { type: "text", ...text },
              { type: "file", file: { filename: "a.pdf", file_data: data } },
            ],
          },
        ],
      },
      responses: {
        input: [
          {
            role: "user",
            content: [
              { type: "input_text", ...text },
              { type: "input_file", filename: "a.pdf", file_data: data },
            ],
          },
        ],
      },
      messages: {
        messages: [
          {
            role: "user",
            content: [
              {
                type: "document",
                source: { type: "base64", media_type: "application/pdf", data: pdf },
              },
              { type: "text", ...text },
            ],
          },
        ],
      },
    });
    expect(reply.json["error"] ?? undefined).toBeUndefined();
    expect(sent(vendor)).toContain(pdf);
  });

  it.skipIf(style === "chat")("an image in a tool's result arrives", async () => {
    const reply = await send(pair, "", {
      responses: {
        ...toolsOf.responses,
        input: [
          { role: "user", content: "call weather" },
          { type: "function_call", call_id: "call_1", name: "weather", arguments: "{}" },
          {
            type: "function_call_output",
            call_id: "call_1",
            output: [
              { type: "input_text", text: "a picture" },
              { type: "input_image", detail: "auto", image_url: `data:image/png;base64,${png}` },
            ],
          },
        ],
      },
      messages: {
        ...toolsOf.messages,
        messages: [
          { role: "user", content: "call weather" },
          {
            role: "assistant",
            content: [{ type: "tool_use", id: "toolu_1", name: "weather", input: {} }],
          },
          {
            role: "user",
            content: [
              {
                type: "tool_result",
                tool_use_id: "toolu_1",
                content: [
                  { type: "text", text: "a picture" },
                  { type: "image", source: { type: "base64", media_type: "image/png", data: png } },
                ],
              },
            ],
          },
        ],
      },
    });
    expect(reply.json["error"] ?? undefined).toBeUndefined();
    expect(sent(vendor)).toContain(png);
  });

  it("late words of the system arrive in their place", async () => {
    const begun = [
      { role: "user", content: "say hello" },
      { role: "assistant", content: "Hello" },
    ];
    const late = { role: "system", content: "Be brief from now on." };
    const question = { role: "user", content: "echo system" };
    const turns = [...begun, late, question];
    const reply = await send(pair, "", {
      chat: { messages: turns },
      responses: { input: turns },
      // Vendors of messages take it only behind the user.
      messages: { messages: [...begun, question, late] },
    });
    expect(reply.json["error"] ?? undefined).toBeUndefined();
    expect(sent(vendor)).toContain("Be brief from now on.");
  });

  it("the vendor's refusal says what the vendor said", async () => {
    const reply = await send(pair, "status 400");
    expect(reply.status).toBe(400);
    expect((reply.json["error"] as Json)["message"]).toContain("simulated 400");
  });
});

describe("what a vendor's style has no word for (R-TXT-2)", () => {
  it.each(["responses", "messages"] as const)(
    "is named, or refused: seed at %s",
    async (vendor) => {
      const pair: Pair = { style: "chat", vendor };
      const reply = await send(pair, "say hello", { chat: { seed: 7 } });
      expect(reply.headers.get("x-uas-dropped")).toBe("seed");
      const strict = await send(
        pair,
        "say hello",
        { chat: { seed: 7 } },
        { "x-uas-strict": "true" },
      );
      expect(strict.status).toBe(400);
      expect(JSON.stringify(strict.json)).toContain("seed");
    },
  );

  it("is named: top_k and cache marks at chat", async () => {
    const reply = await send({ style: "messages", vendor: "chat" }, "say hello", {
      messages: {
        top_k: 5,
        system: [{ type: "text", text: "x", cache_control: { type: "ephemeral" } }],
      },
    });
    expect(reply.headers.get("x-uas-dropped")).toMatch(/top_k/);
    expect(reply.status).toBe(200);
  });
});
