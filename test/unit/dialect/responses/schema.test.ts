import { create } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { PartSchema, ToolType } from "../../../../gen/uas/inference/v1/conversation_pb.ts";
import { ReplySchema, StopReason } from "../../../../gen/uas/inference/v1/generate_pb.ts";
import { ErrorCode, GatewayError } from "../../../../src/core/errors.ts";
import { encodeResponsesReply } from "../../../../src/dialect/responses/encode-reply.ts";
import { ResponsesStreamEncoder } from "../../../../src/dialect/responses/encode-stream.ts";
import { pendingResponse, withStatus } from "../../../../src/dialect/responses/response-json.ts";
import { missingMembers } from "./published.ts";
import { replies } from "./replies.ts";
import { faultsOfEvent, faultsOfResponse } from "./schema.ts";
import { begin, decode, delta, end, eventsOf, replyOptions, start, streamOf } from "./support.ts";

/** Requests whose members a response repeats. */
const requests = {
  plain: { model: "m", input: "hi" },
  tools: {
    model: "m",
    input: "hi",
    frequency_penalty: -1,
    tools: [
      { type: "function", name: "f" },
      { type: "function", name: "g", parameters: { type: "object" }, strict: true },
      { type: "custom", name: "c" },
      { type: "namespace", name: "n", description: "d", tools: [{ type: "function", name: "h" }] },
    ],
    tool_choice: { type: "function", name: "f" },
  },
};

type Body = Record<string, unknown> & { output: Array<Record<string, unknown>> };

function wholeReply(parts: object[], stopReason: StopReason): Body {
  const made = parts.map((kind) => create(PartSchema, { kind } as never));
  const reply = create(ReplySchema, { id: "v", parts: made, stopReason });
  const options = replyOptions(decode(requests.plain));
  return JSON.parse(encodeResponsesReply(reply, options).toString()) as Body;
}

function callOf(input: string, type: ToolType = ToolType.FUNCTION) {
  return { case: "toolCall", value: { id: "c1", name: "f", type, input } };
}

describe("a translated response has every required member of the responses schema", () => {
  for (const [kind, request] of Object.entries(requests)) {
    for (const [name, events] of Object.entries(replies)) {
      it(`every event has the members that the schema requires: ${name}, after a request with ${kind}`, () => {
        const stream = eventsOf(streamOf(events, replyOptions(decode(request))));
        expect(stream.flatMap(faultsOfEvent)).toEqual([]);
        expect(stream.flatMap((event) => missingMembers(event))).toEqual([]);
      });
    }
  }

  it("a whole reply has the members that the schema requires", () => {
    const text = { case: "text", value: { text: "hello" } };
    const whole = wholeReply([text, callOf("{}")], StopReason.TOOL_CALLS);
    expect(faultsOfResponse(whole)).toEqual([]);
    expect(missingMembers(whole)).toEqual([]);
  });

  it("a response has the members that the schema requires while it is queued, and after it failed", () => {
    const begun = { id: "resp_1", model: "m", created: 5 };
    const json = pendingResponse(JSON.stringify(requests.tools), begun);
    const queued = JSON.parse(json) as Record<string, unknown>;
    expect(faultsOfResponse(queued)).toEqual([]);
    expect(missingMembers(queued)).toEqual([]);
    const error = { code: "upstream_error", message: "gone" };
    const failed = withStatus(json, { status: "failed", error });
    expect(faultsOfResponse(JSON.parse(failed))).toEqual([]);
  });

  it("the event of a failure has the members that the schema requires", () => {
    const encoder = new ResponsesStreamEncoder(replyOptions(decode(requests.plain)));
    const failure = encoder.fail(new GatewayError(ErrorCode.UPSTREAM_ERROR, "gone"));
    expect(eventsOf(failure).flatMap(faultsOfEvent)).toEqual([]);
    expect(missingMembers(eventsOf(failure))).toEqual([]);
  });

  it("a complete response has the time of its end, which is never before its begin", () => {
    const stream = eventsOf(streamOf([start(), end()], replyOptions(decode(requests.plain))));
    const of = (index: number) => stream.at(index)?.["response"] as Body;
    expect(of(0)["completed_at"]).toBeNull();
    expect(of(-1)).toMatchObject({ created_at: 1_690_000_000, completed_at: 1_700_000_009 });
    expect(wholeReply([], StopReason.LENGTH)["completed_at"]).toBeNull();
  });

  it("a response has the penalties that the request named", () => {
    const stream = eventsOf(streamOf([start(), end()], replyOptions(decode(requests.tools))));
    const last = stream.at(-1)?.["response"] as Body;
    expect(last).toMatchObject({ frequency_penalty: -1, presence_penalty: 0 });
    expect(last["tools"]).toMatchObject([
      { name: "f", strict: false, description: null },
      { name: "g", strict: true },
      { name: "c" },
      { tools: [{ name: "h", strict: false }] },
    ]);
  });

  it("the schema test notices a reply without one of the members", () => {
    const { strict: _, ...tool } = { type: "function", name: "f", parameters: null, strict: false };
    const whole = wholeReply([], StopReason.END);
    expect(faultsOfResponse({ ...whole, tools: [tool] })).not.toEqual([]);
    for (const name of Object.keys(whole)) {
      const { [name]: _gone, ...rest } = whole;
      expect(faultsOfResponse(rest), name).not.toEqual([]);
    }
    const { error: _error, ...withoutError } = whole;
    expect(missingMembers({ ...withoutError, tools: [tool] })).toEqual([
      " lacks error",
      "/tools/0 lacks strict",
    ]);
  });
});

describe("a call that the length limit cut is incomplete", () => {
  const statusOf = (input: string, type: ToolType = ToolType.FUNCTION) =>
    wholeReply([callOf(input, type)], StopReason.LENGTH).output[0];

  it("a call that the length limit cut is incomplete in a whole reply, with the arguments that came", () => {
    expect(statusOf('{"a')).toMatchObject({ status: "incomplete", arguments: '{"a' });
    expect(statusOf("")).toMatchObject({ status: "incomplete", arguments: "" });
    expect(statusOf("*** Be", ToolType.CUSTOM)).toMatchObject({ status: "incomplete" });
  });

  it("a call is not incomplete where its arguments are complete, nor before other parts", () => {
    expect(statusOf('{"a":1}')).toMatchObject({ status: "completed" });
    const text = { case: "text", value: { text: "and" } };
    const { output } = wholeReply([callOf(""), text], StopReason.LENGTH);
    expect(output).toMatchObject([
      { status: "completed", arguments: "{}" },
      { status: "incomplete" },
    ]);
  });

  it("a call that the length limit cut is incomplete in a stream, also if the vendor ended the part before it reported the reason", () => {
    const call = { kind: { case: "toolCall" as const, value: { id: "c1", name: "f" } } };
    const cut = [start(), begin(0, call), delta(0, { case: "input", value: '{"a' })];
    const ended = { ...cut.at(-1)!, kind: { case: "partEnd", value: { index: 0 } } } as never;
    for (const events of [cut, [...cut, ended]]) {
      const all = [...events, end({ stopReason: StopReason.LENGTH })];
      const stream = eventsOf(streamOf(all, replyOptions(decode(requests.plain))));
      const done = stream.find(({ type }) => type === "response.output_item.done");
      expect(done?.["item"]).toMatchObject({ status: "incomplete", arguments: '{"a' });
      expect(stream.at(-1)?.["response"]).toMatchObject({ output: [done?.["item"]] });
    }
  });
});
