/** The typed door: text generation in the contract's own messages. */
import type { MessageInitShape } from "@bufbuild/protobuf";
import { Code, createClient } from "@connectrpc/connect";
import { describe, expect, it } from "vitest";
import { CallEnding } from "../../../gen/uas/billing/v1/call_pb.ts";
import { Role, ToolType } from "../../../gen/uas/inference/v1/conversation_pb.ts";
import { type GenerationSchema, StopReason } from "../../../gen/uas/inference/v1/generate_pb.ts";
import { InferenceService } from "../../../gen/uas/inference/v1/inference_service_pb.ts";
import { publicModel } from "../../support/gateway.ts";
import { answer } from "../../support/upstream/behaviour.ts";
import { bearer, demoModel, failureOf, useGateway, withTransport } from "./harness.ts";

type GenerationInit = MessageInitShape<typeof GenerationSchema>;

function says(text: string, rest: Partial<GenerationInit> = {}): GenerationInit {
  return {
    model: demoModel,
    conversation: {
      turns: [{ role: Role.USER, parts: [{ kind: { case: "text", value: { text } } }] }],
    },
    ...rest,
  } as GenerationInit;
}

const weather = {
  kind: {
    case: "function",
    value: {
      name: "get_weather",
      parametersJson: '{"type":"object","properties":{"city":{"type":"string"}}}',
    },
  },
} as const;

describe.each(["grpc", "connect", "grpc-web"] as const)("Generate over %s", (protocol) => {
  const fixture = useGateway();

  async function generate(generation: GenerationInit, requestId: string, more = {}) {
    const { gateway, customer } = fixture;
    const baseUrl = protocol === "grpc" ? gateway.internalUrl : gateway.url;
    return withTransport(baseUrl, protocol, (transport) =>
      createClient(InferenceService, transport).generate(
        { generation },
        { headers: { ...bearer(customer.key), "x-request-id": requestId, ...more } },
      ),
    );
  }

  it("returns the kept reply to a repetition with the same idempotency key", async () => {
    fixture.upstream.script(answer({ text: ["Hello once"] }), answer({ text: ["Hello twice"] }));
    const hello = { ...says("Hello"), model: publicModel };
    const repeated = { "idempotency-key": `generate-${protocol}` };
    const first = await generate(hello, "first", repeated);
    expect(await generate(hello, "second", repeated)).toEqual(first);
    expect(fixture.upstream.requests).toHaveLength(1);
  });

  it("returns the whole reply, charged and recorded as one call", async () => {
    const id = `generate-${protocol}`;
    const { reply } = await generate(says("Hello"), id);
    expect(reply?.parts.map(({ kind }) => kind.case)).toEqual(["text"]);
    const [part] = reply?.parts ?? [];
    expect(part?.kind.case === "text" && part.kind.value.text).toContain("Hello");
    expect(reply).toMatchObject({ model: demoModel, stopReason: StopReason.END });
    expect(reply?.usage?.outputTokens).toBeGreaterThan(0);
    const call = await fixture.gateway.call(id);
    expect(call).toMatchObject({
      model: demoModel,
      ending: CallEnding.COMPLETED,
      stream: false,
      path: "/uas.inference.v1.InferenceService/Generate",
    });
    expect(call.usage).toMatchObject({ outputTokens: reply?.usage?.outputTokens });
  });

  it("names what the vendor's style cannot carry (R-TXT-2)", async () => {
    const { dropped } = await generate(says("Hello", { topK: 5 }), `dropped-${protocol}`);
    expect(dropped).toEqual(["top_k"]);
    expect((await fixture.gateway.call(`dropped-${protocol}`)).dropped).toEqual(["top_k"]);
  });
});

describe("StreamGenerate", () => {
  const fixture = useGateway();

  async function events(generation: GenerationInit, requestId: string, more = {}) {
    const { gateway, customer } = fixture;
    return withTransport(gateway.internalUrl, "grpc", async (transport) =>
      Array.fromAsync(
        createClient(InferenceService, transport).streamGenerate(
          { generation },
          { headers: { ...bearer(customer.key), "x-request-id": requestId, ...more } },
        ),
        ({ event }) => event?.kind,
      ),
    );
  }

  it("gives the kept events to a repetition with the same idempotency key", async () => {
    const repeated = { "idempotency-key": "stream-generate" };
    const hello = { ...says("Hello"), model: publicModel };
    const first = await events(hello, "first", repeated);
    expect(await events(hello, "second", repeated)).toEqual(first);
    expect(fixture.upstream.requests).toHaveLength(1);
  });

  it("gives start, deltas of one part, and the end with usage", async () => {
    const kinds = await events(says("Hello"), "stream-generate");
    expect(kinds.at(0)).toMatchObject({ case: "start", value: { model: demoModel } });
    expect(kinds.at(-1)).toMatchObject({ case: "end", value: { stopReason: StopReason.END } });
    const text = kinds.flatMap((kind) =>
      kind?.case === "partDelta" && kind.value.delta.case === "text"
        ? [kind.value.delta.value]
        : [],
    );
    expect(text.length).toBeGreaterThan(3);
    expect(text.join("")).toContain("Hello");
    const call = await fixture.gateway.call("stream-generate");
    expect(call).toMatchObject({ stream: true, ending: CallEnding.COMPLETED });
  });

  it("gives tool calls with their names and whole input", async () => {
    const generation = says("What is the weather in Paris?", {
      conversation: {
        turns: [
          {
            role: Role.USER,
            parts: [{ kind: { case: "text", value: { text: "What is the weather in Paris?" } } }],
          },
        ],
        tools: [weather],
      },
    });
    const kinds = await events(generation, "stream-tools");
    const calls = kinds.flatMap((kind) =>
      kind?.case === "partStart" && kind.value.part?.kind.case === "toolCall"
        ? [kind.value.part.kind.value]
        : [],
    );
    expect(calls).toMatchObject([{ name: "get_weather", type: ToolType.FUNCTION }]);
    expect(kinds.at(-1)).toMatchObject({
      case: "end",
      value: { stopReason: StopReason.TOOL_CALLS },
    });
  });

  it.each([
    ["no generation", undefined, Code.InvalidArgument, "generation"],
    ["no model", says("x", { model: "" }), Code.InvalidArgument, "generation.model"],
    ["an unknown model", says("x", { model: "nope" }), Code.NotFound, "model"],
    [
      "no turns",
      says("x", { conversation: { turns: [] } }),
      Code.InvalidArgument,
      "generation.conversation.turns",
    ],
    [
      "a limit of 0",
      says("x", { maxOutputTokens: 0 }),
      Code.InvalidArgument,
      "generation.max_output_tokens",
    ],
  ])("refuses %s; nothing is held or charged", async (_what, generation, code, param) => {
    const { gateway, customer } = fixture;
    const before = await gateway.money(customer.accountId);
    const { error, told } = await failureOf(
      withTransport(gateway.internalUrl, "grpc", (transport) =>
        createClient(InferenceService, transport).generate(generation ? { generation } : {}, {
          headers: bearer(customer.key),
        }),
      ),
    );
    expect(error).toMatchObject({ code });
    expect(told).toMatchObject({ param });
    expect(await gateway.money(customer.accountId)).toEqual(before);
  });

  it("fails with the vendor's error where a stream breaks, and charges what came", async () => {
    fixture.upstream.script(answer({ text: ["Hel", "lo"], cutAfter: 2 }));
    const failed = events(says("Hello", { model: publicModel }), "stream-cut");
    await expect(failed).rejects.toMatchObject({ code: Code.Unavailable });
    expect(await fixture.gateway.call("stream-cut")).toMatchObject({
      ending: CallEnding.UPSTREAM_FAILED,
    });
  });
});
