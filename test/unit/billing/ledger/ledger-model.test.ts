import { afterAll, beforeAll, expect, test } from "vitest";
import { type Billing, openBilling } from "../harness.ts";
import { checkLedger } from "./ledger-commands.ts";

/**
 * About 12 s on two busy cores; `npm run soak` does more. A failure prints the seed and the path to
 * it.
 */
const runs = 400;

let billing: Billing;
beforeAll(async () => void (billing = await openBilling()));
afterAll(() => billing.close());

test("R-MON-2, R-MON-3, R-MON-5, R-MON-6, R-MON-7, R-MON-9, R-KEY-4: the ledger does what the model does, in every order of events", {
  timeout: 400_000,
}, async () => {
  await checkLedger(billing, runs);
  // It has been if it hurts: charges, sweeps, corrections of the customer's part, growth, keys.
  expect(await billing.count("hold", "state = 2")).toBeGreaterThan(runs / 2);
  expect(await billing.count("hold", "state = 4")).toBeGreaterThan(runs / 2);
  expect(await billing.count("ledger_entry", "kind = 6 and account = 1")).toBeGreaterThan(0);
  expect(await billing.count("hold_step")).toBeGreaterThan(runs / 10);
  expect(await billing.count("key_spend", "spent > 0")).toBeGreaterThan(runs / 10);
});
