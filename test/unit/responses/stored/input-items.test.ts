import { describe, expect, it } from "vitest";
import {
  inputItems,
  type JsonItem,
  listedItems,
} from "../../../../src/responses/stored/input-items.ts";

/** The items as their text says, which is what they were parsed to. */
function recordsOf(items: readonly JsonItem[]): Record<string, unknown>[] {
  return items.map(({ record, json }) => {
    expect(JSON.parse(json)).toEqual(record);
    return { ...record };
  });
}

const id = `resp_${"0".repeat(60)}`;

describe("input items", () => {
  it("a plain text as input is one user message", () => {
    expect(recordsOf(inputItems('"Hi"'))).toEqual([{ role: "user", content: "Hi" }]);
    expect(inputItems("")).toEqual([]);
  });

  it("input items are listed with a type, an id and parts, and keep their own members", () => {
    const items = [
      { role: "user", content: "Hi" },
      { role: "assistant", content: "Ho", id: "msg_mine", status: "incomplete" },
      { type: "function_call", call_id: "c", name: "f", arguments: "{}", extra: 1 },
      { type: "something_new", x: null },
    ];
    const given = inputItems(JSON.stringify(items));
    const listed = recordsOf(listedItems(given, id));
    expect(listed).toEqual([
      {
        type: "message",
        role: "user",
        status: "completed",
        content: [{ type: "input_text", text: "Hi" }],
        id: `msg_${"0".repeat(48)}_0`,
      },
      {
        type: "message",
        role: "assistant",
        status: "incomplete",
        content: [{ type: "output_text", text: "Ho", annotations: [] }],
        id: "msg_mine",
      },
      { ...items[2], id: `fc_${"0".repeat(48)}_2` },
      { ...items[3], id: `item_${"0".repeat(48)}_3` },
    ]);
    expect(recordsOf(listedItems(given, id))).toEqual(listed);
    for (const item of listed) expect(String(item["id"]).length).toBeLessThanOrEqual(64);
  });
});
