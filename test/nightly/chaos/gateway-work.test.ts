/** Definition of a whole reply in chaos runs. */
import { expect, test } from "vitest";
import { isWholeStream } from "./gateway-work.ts";

test("a stream that the gateway ends with an error event did not come whole", () => {
  const text = `data: {"choices":[{"delta":{"content":"word"}}]}\n\n`;
  const failed = `${text}data: {"error":{"message":"The database is not available"}}\n\n`;
  expect(isWholeStream(Buffer.from(`${text}data: [DONE]\n\n`))).toBe(true);
  expect(isWholeStream(Buffer.from(failed))).toBe(false);
  expect(isWholeStream(Buffer.from(text))).toBe(false);
});
