/** Replies of every shape, as the events that a responses stream is written from. */
import { ToolType } from "../../../../gen/uas/inference/v1/conversation_pb.ts";
import { type GenerateEvent, StopReason } from "../../../../gen/uas/inference/v1/generate_pb.ts";
import { begin, delta, end, finish, messagesSeal, start, text, whole } from "./support.ts";

const call = (name: string, id: string, type: ToolType = ToolType.FUNCTION) => ({
  kind: { case: "toolCall" as const, value: { name, id, type } },
});
export const plain = { kind: { case: "text" as const, value: {} } };
const refusal = { kind: { case: "refusal" as const, value: {} } };
const reasoning = (itemId = "") => ({ kind: { case: "reasoning" as const, value: { itemId } } });

/** Replies of every shape, as other styles' vendors give them. */
export const replies: Record<string, GenerateEvent[]> = {
  text: [start(), ...whole(0, plain, ...text("Hel", 'lo \u2028 "you"')), end()],
  "an empty reply": [start(), end()],
  "two texts in a row": [
    start(),
    ...whole(0, plain, ...text("one")),
    ...whole(1, plain, ...text("two")),
    end(),
  ],
  "reasoning with a foreign seal, text and calls": [
    start(),
    ...whole(0, reasoning(), ...text("let me ", "think"), {
      case: "seal",
      value: messagesSeal("sig=="),
    }),
    ...whole(1, plain, ...text("I call")),
    ...whole(
      2,
      call("look_up", "toolu_1"),
      { case: "input", value: '{"a"' },
      { case: "input", value: ":1}" },
    ),
    ...whole(3, call("nothing", "toolu_2")),
    ...whole(4, call("patch", "toolu_3", ToolType.CUSTOM), { case: "input", value: "*** Begin" }),
    end({ stopReason: StopReason.TOOL_CALLS }),
  ],
  "parts that are under way at once": [
    start(),
    begin(0, plain),
    delta(0, { case: "text", value: "a" }),
    begin(1, call("f", "c1")),
    begin(2, call("g", "c2")),
    delta(1, { case: "input", value: "{" }),
    delta(2, { case: "input", value: "{}" }),
    delta(0, { case: "text", value: "b" }),
    delta(1, { case: "input", value: "}" }),
    finish(2),
    finish(0),
    finish(1),
    end({ stopReason: StopReason.TOOL_CALLS }),
  ],
  "calls with the same id": [
    start(),
    ...whole(0, call("f", "same"), { case: "input", value: "{}" }),
    ...whole(1, call("f", "same"), { case: "input", value: "{}" }),
    ...whole(2, call("p", "", ToolType.CUSTOM), { case: "input", value: "x" }),
    end({ stopReason: StopReason.TOOL_CALLS }),
  ],
  "a refusal": [
    start(),
    ...whole(0, refusal, ...text("I ", "will not")),
    end({ stopReason: StopReason.REFUSAL }),
  ],
  "summaries and text of this style's reasoning": [
    start(),
    ...whole(
      0,
      reasoning("rs_1"),
      { case: "summaryStart", value: true },
      { case: "summary", value: "first" },
      { case: "summaryStart", value: true },
      { case: "summary", value: "second" },
      ...text("raw"),
    ),
    ...whole(1, plain, ...text("x")),
    end(),
  ],
  "a text with sources": [
    start(),
    ...whole(
      0,
      plain,
      { case: "citation", value: { url: "https://a.example", title: "A", json: "{}" } },
      ...text("cited"),
    ),
    end(),
  ],
  "parts that nobody ends": [
    start(),
    begin(0, plain),
    delta(0, { case: "text", value: "cut" }),
    begin(1, call("f", "c1")),
    delta(1, { case: "input", value: '{"a' }),
    end({ stopReason: StopReason.LENGTH }),
  ],
};
