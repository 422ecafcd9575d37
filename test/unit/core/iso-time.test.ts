import * as fc from "fast-check";
import { expect, test } from "vitest";
import { isoTime } from "../../../src/core/iso-time.ts";

test("a moment is written as Date.toISOString writes it, whichever came before", () => {
  // Few seconds, so that some follow each other; all of them, far years and times before 1970
  // included.
  const near = fc.integer({ min: -3_000, max: 3_000 });
  const any = fc.date({ noInvalidDate: true }).map((date) => date.getTime());
  fc.assert(
    fc.property(fc.array(fc.oneof(near, any)), (times) => {
      for (const timeMs of times) expect(isoTime(timeMs)).toBe(new Date(timeMs).toISOString());
    }),
  );
});
