/**
 * The database's primary dies under load, and its standby is promoted: nothing that was acknowledged is lost or doubled.
 * The short form of `npm run ha`, which also freezes the primary.
 */
import { expect, test } from "vitest";
import { runFailover } from "./failover.ts";

test("after a failover from a killed primary, every acknowledged charge, task and top-up is there once, and both gateways serve", {
  timeout: 300_000,
}, async () => {
  const result = await runFailover({
    failure: "killed",
    loadMs: 300,
    outageMs: 1_500,
    isFast: true,
  });
  expect(result).toMatchObject({
    findings: { lost: 0, doubled: 0, drift: 0, stuck: 0, details: [] },
    auditFailure: undefined,
    // Success or 503, nothing else.
    others: {},
  });
  // There was something to lose, and an outage.
  expect(result.acknowledged).toBeGreaterThan(24);
  expect(result.refused).toBeGreaterThan(0);
});
