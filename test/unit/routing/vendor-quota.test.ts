/** A vendor's remaining quota according to its rate limit headers. */
import * as fc from "fast-check";
import { expect, it } from "vitest";
import { hasQuota, VendorQuota, type QuotaMark } from "../../../src/routing/vendor-quota.ts";

const openai = (requests: number, reset = "1m0s") => ({
  "x-ratelimit-remaining-requests": String(requests),
  "x-ratelimit-reset-requests": reset,
});

it.each([
  ["20ms", 20],
  ["1s", 1_000],
  ["6m0s", 60_000],
  ["2.5s", 2_500],
  ["7", 7_000],
  ["soon", 1_000],
  ["", 1_000],
])("an empty limit with the reset %j keeps calls away for %d ms", (reset, ms) => {
  const quota = new VendorQuota();
  quota.received(openai(0, reset), quota.sent(0), 5);
  expect(quota.takes(0, 5 + ms - 1)).toBe(false);
  expect(quota.takes(0, 5 + ms)).toBe(true);
});

it("Anthropic's headers count too, with a date", () => {
  const quota = new VendorQuota();
  const reset = new Date(Date.now() + 30_000).toISOString();
  const headers = {
    "anthropic-ratelimit-tokens-remaining": "100",
    "anthropic-ratelimit-tokens-reset": reset,
  };
  expect(hasQuota(headers)).toBe(true);
  quota.received(headers, quota.sent(10), 0);
  expect([quota.takes(100, 1), quota.takes(101, 1), quota.takes(101, 31_000)]).toEqual([
    true,
    false,
    true,
  ]);
});

it("a figure that cannot be read changes nothing", () => {
  const quota = new VendorQuota();
  quota.received({ "x-ratelimit-remaining-requests": "many" }, quota.sent(0), 0);
  expect(quota.takes(1, 0)).toBe(true);
  expect(hasQuota({ "x-ratelimit-limit-requests": "5" })).toBe(false);
});

it("once the vendor has said what is left, no more is sent, in whatever order its replies come", () => {
  const limit = 20;
  fc.assert(
    fc.property(fc.array(fc.nat(3), { minLength: 30, maxLength: 80 }), (steps) => {
      const quota = new VendorQuota();
      let accepted = 0;
      const open: { readonly mark: QuotaMark; readonly left: number }[] = [];
      const send = (): void => {
        const mark = quota.sent(0);
        accepted++;
        open.push({ mark, left: limit - accepted });
      };
      const receive = (at: number): void => {
        const [reply] = open.splice(at % Math.max(1, open.length), 1);
        if (reply !== undefined) quota.received(openai(reply.left), reply.mark, 0);
      };
      send();
      receive(0);
      for (const step of steps) {
        if (step < 2 && quota.takes(0, 1)) send();
        else receive(step);
        expect(accepted).toBeLessThanOrEqual(limit);
      }
    }),
  );
});
