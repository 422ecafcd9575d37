import { describe, expect, it } from "vitest";
import { median, ratioOf } from "../../../bench/statistics.ts";

describe("statistics of the bench", () => {
  it("a ratio is the median of the ratios within each round, not the ratio of medians", () => {
    // The second round met other work: both took ten times as long.
    const ratio = ratioOf([20, 300, 22], [10, 100, 11]);
    expect(ratio).toEqual({ median: 2, least: 2, most: 3, quietest: 2 });
  });

  it("the median of nothing is not a number", () => {
    expect(median([])).toBeNaN();
    expect(median([4, 1, 3, 2])).toBe(2.5);
  });
});
