import * as fc from "fast-check";
import { expect, it } from "vitest";
import { RetryBudget } from "../../../src/routing/targets.ts";

it("retries are never more than a fifth of the calls, and ten (R-RTE-2)", () => {
  fc.assert(
    fc.property(fc.array(fc.boolean(), { maxLength: 500 }), (isCall) => {
      const budget = new RetryBudget();
      let calls = 0;
      let retries = 0;
      for (const each of isCall) {
        if (each) {
          budget.onCall();
          calls++;
        } else if (budget.take()) retries++;
        expect(retries).toBeLessThanOrEqual(calls / 5 + 10 + 1e-9);
      }
    }),
  );
});
