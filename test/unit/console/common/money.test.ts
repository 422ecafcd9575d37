/** Money on the pages: what is shown is what is there (R-MON-1). */
import { assert, bigInt, boolean, property } from "fast-check";
import { expect, test } from "vitest";
import { decimalUsd, parseUsd, usd } from "../../../../console/src/common/money.ts";

const nanos = bigInt({ min: 0n, max: 999_999_999_999_999_999n });

test("an exact amount reads back as the same amount", () => {
  assert(
    property(boolean(), nanos, (isNegative, size) => {
      const amount = isNegative ? -size : size;
      expect(parseUsd(decimalUsd(amount))).toBe(amount);
    }),
  );
});

test("a shown amount is never more than there is, and less by no more than is cut off", () => {
  assert(
    property(nanos, (amount) => {
      const shown = parseUsd(usd(amount)) ?? -1n;
      expect(shown <= amount).toBe(true);
      const unit = amount >= 1_000_000_000n ? 10_000_000n : amount / 1_000n + 1n;
      expect(amount - shown < unit).toBe(true);
    }),
  );
});

test("amounts look as people write them", () => {
  const cases: readonly [bigint, string][] = [
    [0n, "$0.00"],
    [31_500n, "$0.0000315"],
    [250_000_000n, "$0.25"],
    [123_456_789n, "$0.1234"],
    [1_500_000_000n, "$1.50"],
    [1_234_567_990_000_000n, "$1,234,567.99"],
    [-2_000_000_000n, "−$2.00"],
    [1n, "$0.000000001"],
  ];
  for (const [amount, text] of cases) expect(usd(amount)).toBe(text);
});

test("what is no amount, or finer than a nano-USD, is not taken for one", () => {
  const wrong = ["", "abc", "1.2.3", "1e3", "0.0000000001", "--1", "1 000", "Infinity"];
  for (const text of wrong) expect([text, parseUsd(text)]).toEqual([text, undefined]);
  expect(parseUsd(" $1,250.5 ")).toBe(1_250_500_000_000n);
});
