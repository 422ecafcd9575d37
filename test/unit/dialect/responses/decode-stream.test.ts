import { describe, expect, it } from "vitest";
import { StopReason } from "../../../../gen/uas/inference/v1/generate_pb.ts";
import { ErrorCode } from "../../../../src/core/errors.ts";
import {
  decodeResponsesError,
  decodeResponsesReply,
} from "../../../../src/dialect/responses/decode-reply.ts";
import { assembled, decodeStream } from "./assembled.ts";

const sse = (...events: object[]) =>
  events.map((event) => `event: x\ndata: ${JSON.stringify(event)}\n\n`).join("");
const completed = (response: object) => ({ type: "response.completed", response });

describe("a vendor's stream is read", () => {
  it("a vendor's stream is read where it leaves out all but the deltas", () => {
    const stream = sse(
      { type: "response.output_text.delta", output_index: 0, content_index: 0, delta: "a" },
      { type: "response.output_text.delta", output_index: 0, content_index: 0, delta: "b" },
      completed({ status: "completed", output: [{ type: "message", content: [] }] }),
    );
    const reply = assembled(decodeStream(stream));
    expect(reply.parts).toMatchObject([{ kind: { case: "text", value: { text: "ab" } } }]);
  });

  it("a vendor's stream is read where it leaves out the deltas", () => {
    const call = { type: "function_call", id: "fc_1", call_id: "c", name: "f", arguments: "{}" };
    const message = { type: "message", id: "msg_1", content: [{ type: "output_text", text: "x" }] };
    const stream = sse(
      { type: "response.output_item.added", output_index: 0, item: { ...call, arguments: "" } },
      { type: "response.output_item.done", output_index: 0, item: call },
      { type: "response.output_item.done", output_index: 1, item: message },
      completed({ status: "completed" }),
    );
    const reply = assembled(decodeStream(stream));
    expect(reply.stopReason).toBe(StopReason.TOOL_CALLS);
    expect(reply.parts).toMatchObject([
      { kind: { value: { id: "c", name: "f", input: "{}", itemId: "fc_1" } } },
      { kind: { value: { text: "x" } } },
    ]);
  });

  it("a vendor's stream is read where all of it is in the last event", () => {
    const output = [{ type: "message", content: [{ type: "output_text", text: "x" }] }];
    const reply = assembled(decodeStream(sse(completed({ id: "resp_1", output }))));
    expect(reply).toMatchObject({ id: "resp_1", parts: [{ kind: { value: { text: "x" } } }] });
  });

  it("a vendor's stream is read past unknown events", () => {
    const stream = sse(
      { type: "response.created", response: { id: "resp_1" } },
      { type: "response.hologram.delta", delta: "x" },
      { type: "keepalive", sequence_number: 1 },
      { type: "constructor" },
      completed({ id: "resp_1" }),
    );
    expect(decodeStream(`: hello\n\n${stream}`).map(({ kind }) => kind.case)).toEqual([
      "start",
      "end",
    ]);
  });

  it("a vendor's stream is incomplete by the token limit or the filter", () => {
    const reasonOf = (reason: string) => {
      const response = { status: "incomplete", incomplete_details: { reason } };
      return assembled(decodeStream(sse({ type: "response.incomplete", response }))).stopReason;
    };
    expect(reasonOf("max_output_tokens")).toBe(StopReason.LENGTH);
    expect(reasonOf("content_filter")).toBe(StopReason.CONTENT_FILTER);
  });

  it("a vendor's stream is cut where no event ends it (facts 0.12)", () => {
    const events = decodeStream(sse({ type: "response.created", response: {} }));
    expect(events.map(({ kind }) => kind.case)).toEqual(["start"]);
  });

  const failures: Array<[string, object, ErrorCode]> = [
    [
      "response.failed",
      { type: "response.failed", response: { error: { code: "server_error", message: "down" } } },
      ErrorCode.UPSTREAM_ERROR,
    ],
    [
      "a flat error",
      { type: "error", code: "rate_limit_exceeded", message: "down" },
      ErrorCode.RATE_LIMIT_EXCEEDED,
    ],
    [
      "a nested error",
      { type: "error", error: { type: "x", code: "context_length_exceeded", message: "down" } },
      ErrorCode.INVALID_REQUEST,
    ],
  ];
  for (const [name, event, code] of failures) {
    it(`a vendor's stream is failed by ${name}, and nothing follows`, () => {
      const events = decodeStream(sse(event, completed({})));
      expect(events).toHaveLength(1);
      expect(events[0]?.kind).toMatchObject({ case: "error", value: { code, message: "down" } });
    });
  }

  it("an error of a vendor's stream is never read with the vendor's words about the gateway's own account (R-ERR-3)", () => {
    const events = decodeStream(sse({ type: "error", code: "insufficient_quota", message: "pay" }));
    expect(events[0]?.kind.value).toMatchObject({ code: ErrorCode.SERVICE_UNAVAILABLE });
    expect(JSON.stringify(events)).not.toContain("pay");
  });

  it("bytes that are no such stream are not read as one", () => {
    expect(() => decodeStream("data: <html>\n\n")).toThrow("not a JSON object");
  });
});

describe("a vendor's refusals and failed replies are read", () => {
  it("a vendor's refusals and failed replies are read as errors", () => {
    expect(decodeResponsesError(Buffer.from('{"error":{"message":"no","code":"x"}}'))).toEqual({
      message: "no",
      code: "x",
    });
    expect(decodeResponsesError(Buffer.from("<html>"))).toBeUndefined();
    const failed =
      '{"status":"failed","error":{"code":"server_error","message":"down"},"output":[]}';
    expect(() => decodeResponsesReply(Buffer.from(failed))).toThrow(
      expect.objectContaining({ code: ErrorCode.UPSTREAM_ERROR, message: "down" }),
    );
    expect(() => decodeResponsesReply(Buffer.from("{}"))).toThrow("no output");
  });
});
