/**
 * The database's primary dies under load, and its standby is promoted: nothing that was
 * acknowledged is lost or doubled. The short form of `npm run ha`, which also freezes the primary.
 */
import { expect, test } from "vitest";
import { type FailoverResult, isRight, runFailover } from "./failover.ts";
import { findHaproxy } from "./haproxy.ts";

test.skipIf(findHaproxy() === undefined)(
  "after a failover from a killed primary, every acknowledged charge, task and top-up is there once, and both gateways serve",
  {
    timeout: 300_000,
  },
  async () => {
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
  },
);

const right: FailoverResult = {
  acknowledged: 100,
  refused: 10,
  resumeMs: 1_000,
  refusalMsMax: { json: 900 },
  others: {},
  failedTasks: {},
  deadTasks: {},
  journalFiles: 2,
  findings: { lost: 0, doubled: 0, drift: 0, stuck: 0, details: [] },
  auditFailure: undefined,
  deadHoldsMs: 30_000,
};

test("a failover counts as right only if calls were refused in the outage, and got no other answer than success or 503", () => {
  expect(isRight(right)).toBe(true);
  expect(isRight({ ...right, others: { "json 500": 1 } })).toBe(false);
  expect(isRight({ ...right, refused: 0 })).toBe(false);
  expect(isRight({ ...right, resumeMs: 10_001 })).toBe(false);
});
