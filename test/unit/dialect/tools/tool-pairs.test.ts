import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  type Part,
  Role,
  ToolType,
  type Turn,
} from "../../../../gen/uas/inference/v1/conversation_pb.ts";
import {
  newPart,
  newToolCall,
  newToolResult,
  newTurn,
  textPart,
} from "../../../../src/dialect/turns/parts.ts";
import { pairToolCalls } from "../../../../src/dialect/tools/tool-pairs.ts";

const rules = { areIdsUnique: true, areResultsPaired: true };

function call(id: string): Part {
  return newPart({
    case: "toolCall",
    value: newToolCall(ToolType.FUNCTION, { id, name: "f", input: "{}" }),
  });
}

function result(toolCallId: string, text: string): Part {
  const value = newToolResult({ toolCallId, parts: [textPart(text)], plain: true });
  return newPart({ case: "toolResult", value });
}

const model = (...parts: Part[]): Turn => newTurn(Role.ASSISTANT, parts);
const user = (...parts: Part[]): Turn => newTurn(Role.USER, parts);

/** Turns in short: `call id`, `result id: texts`, `text`. */
function shortOf(turns: readonly Turn[]): readonly string[][] {
  return turns.map(({ parts }) =>
    parts.map(({ kind }) => {
      if (kind.case === "toolCall") return `call ${kind.value.id}`;
      if (kind.case === "text") return kind.value.text;
      if (kind.case !== "toolResult") return "";
      const texts = kind.value.parts.map((each) =>
        each.kind.case === "text" ? each.kind.value.text : "",
      );
      return `result ${kind.value.toolCallId}: ${texts.join(", ")}`;
    }),
  );
}

function paired(...turns: readonly Turn[]): readonly string[][] {
  return shortOf(pairToolCalls(turns, rules));
}

describe("tool calls and results on their way to a vendor", () => {
  it("stay the same turns where ids are unique and results follow their calls", () => {
    const turns = [
      user(textPart("q")),
      model(call("a"), call("b")),
      user(result("b", "2"), result("a", "1")),
      model(textPart("done")),
    ];
    expect(pairToolCalls(turns, rules)).toBe(turns);
  });

  it("get unique ids if an id comes again in each turn", () => {
    const all = paired(
      model(call("f:0")),
      user(result("f:0", "1")),
      model(call("f:0")),
      user(result("f:0", "2")),
      model(call("f:0")),
      user(result("f:0", "3")),
    );
    expect(all).toEqual([
      ["call f:0"],
      ["result f:0: 1"],
      ["call f:0_2"],
      ["result f:0_2: 2"],
      ["call f:0_3"],
      ["result f:0_3: 3"],
    ]);
  });

  it("get unique ids if two calls of a turn have the same one, or none", () => {
    const all = paired(
      model(call("x"), call("x"), call(""), call("")),
      user(result("x", "1"), result("x", "2"), result("", "3"), result("", "4")),
    );
    expect(all).toEqual([
      ["call x", "call x_2", "call call", "call call_2"],
      ["result x: 1", "result x_2: 2", "result call: 3", "result call_2: 4"],
    ]);
  });

  it("keep the ids of earlier turns while a conversation grows", () => {
    const turns = [
      model(call("x")),
      user(result("x", "1")),
      model(call("x")),
      user(result("x", "2")),
      model(call("x_2")),
      user(result("x_2", "3")),
    ];
    const whole = paired(...turns);
    expect(paired(...turns.slice(0, 4))).toEqual(whole.slice(0, 4));
    expect(whole.slice(4)).toEqual([["call x_2_2"], ["result x_2_2: 3"]]);
  });

  it("stand together where a result came late, and two results of a call are one", () => {
    const all = paired(
      model(call("a"), call("b")),
      user(result("a", "1"), textPart("wait")),
      model(textPart("yes")),
      user(result("b", "2"), result("a", "3"), textPart("go on")),
    );
    expect(all).toEqual([
      ["call a", "call b"],
      ["result a: 1, 3", "wait"],
      ["result b: 2"],
      ["yes"],
      ["go on"],
    ]);
  });

  it("a call without a result does not get that of a later call with the same id", () => {
    const all = paired(
      model(call("a")),
      user(textPart("never mind")),
      model(call("a")),
      user(result("a", "2")),
    );
    expect(all).toEqual([["call a"], ["never mind"], ["call a_2"], ["result a_2: 2"]]);
  });

  it("stay as they are where nothing can be put in their place", () => {
    const all = paired(user(result("gone", "1")), model(call("a")), user(textPart("never mind")));
    expect(all).toEqual([["result gone: 1"], ["call a"], ["never mind"]]);
  });

  it("stay as they came where the vendor demands nothing", () => {
    const turns = [
      model(call("a"), call("a")),
      user(textPart("wait")),
      model(textPart("yes")),
      user(result("a", "1"), result("a", "2")),
    ];
    const free = { areIdsUnique: false, areResultsPaired: false };
    expect(shortOf(pairToolCalls(turns, free))).toEqual(shortOf(turns));
  });

  it("all calls have unique ids, and no result or text is lost, for any ids", () => {
    const id = fc.constantFrom("", "a", "a_2", "b", "call");
    const part = fc.oneof(
      id.map(call),
      fc.tuple(id, fc.constantFrom("1", "2")).map(([of, text]) => result(of, text)),
      fc.constant(textPart("t")),
    );
    const turn = fc
      .tuple(fc.boolean(), fc.array(part, { minLength: 1, maxLength: 4 }))
      .map(([isModel, parts]) => {
        const allowed = parts.filter(({ kind }) =>
          isModel ? kind.case !== "toolResult" : kind.case !== "toolCall",
        );
        return isModel ? model(...allowed) : user(...allowed);
      });
    fc.assert(
      fc.property(fc.array(turn, { maxLength: 8 }), (turns) => {
        const written = pairToolCalls(turns, rules);
        const calls = written.flatMap(({ parts }) =>
          parts.flatMap(({ kind }) => (kind.case === "toolCall" ? [kind.value.id] : [])),
        );
        expect(new Set(calls).size).toBe(calls.length);
        expect(calls).not.toContain("");
        const texts = (all: readonly Turn[]): readonly string[] =>
          shortOf(all)
            .flat()
            .flatMap((each) => each.replace(/^(?:call|result) [^:]*(?:: )?/, "").split(", "))
            .toSorted();
        expect(texts(written)).toEqual(texts(turns));
      }),
    );
  });
});
