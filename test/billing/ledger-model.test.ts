import { afterAll, beforeAll, expect, test } from "vitest";
import { type FaultProxy, startFaultProxy } from "../support/fault-proxy.ts";
import { type Billing, openBilling } from "./harness.ts";
import { checkLedger } from "./ledger-model.ts";

/** As many as take about 20 s on two busy cores; `node test/soak/ledger.ts --runs 10000` does more. */
const runs = 800;

let billing: Billing;
let proxy: FaultProxy;
beforeAll(async () => {
  billing = await openBilling();
  proxy = await startFaultProxy(billing.url);
});
afterAll(async () => {
  await proxy.close();
  await billing.close();
});

test("R-MON-2, R-MON-3, R-MON-6, R-MON-9: the ledger does what the model does, in every order of events", {
  timeout: 120_000,
}, async () => {
  await checkLedger(billing.pool, proxy, runs);
  expect(await billing.count("ledger_entry")).toBeGreaterThan(runs);
});
