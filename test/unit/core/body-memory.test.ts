/** Memory of large bodies is freed with its last user, and not before. */
import { expect, it } from "vitest";
import {
  countedBytesMin,
  countMemory,
  leaveMemory,
  useMemory,
} from "../../../src/core/body-memory.ts";

const body = (bytes = countedBytesMin): Uint8Array => new Uint8Array(new ArrayBuffer(bytes));

it("memory is freed with its last user, and not before", () => {
  const counted = body();
  countMemory(counted);
  useMemory(counted.subarray(5, 9));
  leaveMemory(counted);
  expect(counted.length).toBe(countedBytesMin);
  leaveMemory(counted.subarray(5, 9));
  expect([counted.length, counted.buffer.byteLength]).toEqual([0, 0]);
});

it("memory of short bodies, of parts, and of what was never counted is left alone", () => {
  const short = body(countedBytesMin - 1);
  const whole = body(2 * countedBytesMin);
  const part = whole.subarray(0, countedBytesMin);
  const other = body();
  for (const bytes of [short, part]) countMemory(bytes);
  for (const bytes of [short, part, other]) {
    useMemory(bytes);
    leaveMemory(bytes);
    leaveMemory(bytes);
  }
  expect([short.length, part.length, other.length]).toEqual([
    countedBytesMin - 1,
    countedBytesMin,
    countedBytesMin,
  ]);
});

it("memory that is freed can be left once more", () => {
  const counted = body();
  countMemory(counted);
  leaveMemory(counted);
  leaveMemory(counted);
  expect(counted.length).toBe(0);
});
