/** Values that the gateway writes into its headers. */
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { memberList } from "../../../../src/core/member-list.ts";

describe("the list of members in x-uas-dropped", () => {
  it("x-uas-dropped lists plain names unchanged", () => {
    expect(memberList(["seed", "text.format.strict", "tools[0].x"])).toBe(
      "seed, text.format.strict, tools[0].x",
    );
    expect(memberList([])).toBe("");
  });

  it("the list of members in x-uas-dropped is one short line of visible ASCII for any member names", () => {
    const name = fc.oneof(fc.string({ unit: "binary" }), fc.constant("x\r\nset-cookie: a=b"));
    fc.assert(
      fc.property(fc.array(name, { maxLength: 300 }), (names) => {
        const list = memberList(names);
        expect(list.length).toBeLessThanOrEqual(1024);
        expect(list).toMatch(/^[\x20-\x7e]*$/);
        expect(list.split(", ").length).toBeLessThanOrEqual(names.length + 1);
      }),
    );
  });

  it("marks omitted names with three dots, and cuts long names", () => {
    expect(memberList(Array.from({ length: 500 }, () => "abcd"))).toMatch(/abcd, \.\.\.$/);
    expect(memberList(["y".repeat(20_000_000)])).toBe(`${"y".repeat(125)}...`);
  });
});
