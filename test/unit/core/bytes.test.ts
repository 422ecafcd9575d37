import { expect, test } from "vitest";
import { joinAndFree } from "../../../src/core/bytes.ts";

/** A piece in separate memory, as from Node's HTTP parser. */
function ownPiece(text: string): Buffer {
  const piece = Buffer.allocUnsafeSlow(text.length);
  piece.write(text);
  return piece;
}

test("joining the pieces of a body frees the memory of each that has its own", () => {
  const pieces = [ownPiece("one "), ownPiece("two")];
  expect(joinAndFree(pieces).toString()).toBe("one two");
  expect(pieces.map(({ buffer }) => buffer.byteLength)).toEqual([0, 0]);
});

test("joining the pieces of a body leaves memory alone that others share", () => {
  const read = Buffer.from("one two three");
  expect(joinAndFree([read.subarray(0, 4), read.subarray(4, 7)]).toString()).toBe("one two");
  expect(read.toString()).toBe("one two three");
});

test("a body of one piece stays as it is", () => {
  const piece = ownPiece("whole");
  expect(joinAndFree([piece]).toString()).toBe("whole");
});
