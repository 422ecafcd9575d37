import { describe, expect, it } from "vitest";
import { AttemptOutcome } from "../../../gen/uas/webhook/v1/webhook_pb.ts";
import {
  EventKind,
  classifyAttempt,
  outcomeOf,
  readRetryAfter,
  retryPausesMs,
} from "../../../src/webhook/schedule.ts";

const { SERVER_ERROR, DELIVERED, GONE, TIMEOUT } = AttemptOutcome;
const failed = {
  kind: EventKind.TERMINAL,
  series: 1,
  outcome: SERVER_ERROR,
  retryAfterMs: 0,
} as const;

describe("R-HOOK-3: the schedule", () => {
  it("the schedule is 14 attempts in 72 hours", () => {
    expect(retryPausesMs).toHaveLength(13);
    const hours = retryPausesMs.reduce((sum, ms) => sum + ms, 0) / 3_600_000;
    expect(hours).toBeGreaterThan(71);
    expect(hours).toBeLessThan(72);
    expect(retryPausesMs).toEqual(retryPausesMs.toSorted((a, b) => a - b));
  });

  it("spreads each pause by a fifth in both directions", () => {
    for (const [index, pauseMs] of retryPausesMs.entries()) {
      const at = (random: number) => classifyAttempt({ ...failed, series: index + 1 }, random);
      expect(at(0)).toEqual({ state: "pending", pauseMs: pauseMs * 0.8 });
      expect(at(0.5)).toEqual({ state: "pending", pauseMs });
      expect(at(1)).toEqual({ state: "pending", pauseMs: pauseMs * 1.2 });
    }
    expect(classifyAttempt({ ...failed, series: 14 }, 0.5)).toEqual({ state: "failed" });
  });

  it("respects retry-after up to an hour, and never waits less than its own pause", () => {
    const pauseAfter = (retryAfterMs: number, series = 1) => {
      const verdict = classifyAttempt({ ...failed, series, retryAfterMs }, 0.5);
      return verdict.state === "pending" && verdict.pauseMs / 1_000;
    };
    expect([pauseAfter(0), pauseAfter(1_000), pauseAfter(60_000)]).toEqual([5, 5, 60]);
    expect([pauseAfter(1e9), pauseAfter(60_000, 8)]).toEqual([3_600, 14_400]);
  });

  it("the schedule retries ends only, and not after a 410", () => {
    expect(classifyAttempt({ ...failed, outcome: DELIVERED }, 0.5)).toEqual({ state: "delivered" });
    expect(classifyAttempt({ ...failed, outcome: GONE }, 0.5)).toEqual({ state: "failed" });
    for (const kind of [EventKind.PROGRESS, EventKind.TEST]) {
      expect(classifyAttempt({ ...failed, kind, outcome: TIMEOUT }, 0.5)).toEqual({
        state: "failed",
      });
    }
  });

  it("the schedule reads retry-after as seconds or as a date", () => {
    const now = new Date("2026-11-21T09:30:00Z");
    expect(readRetryAfter("120", now)).toBe(120_000);
    expect(readRetryAfter("Sat, 21 Nov 2026 09:31:00 GMT", now)).toBe(60_000);
    expect(readRetryAfter("Sat, 21 Nov 2026 09:29:00 GMT", now)).toBe(0);
    for (const odd of [undefined, "", "-5", "soon", "1e99", ["5"]])
      expect(readRetryAfter(odd, now)).toBe(0);
  });

  it("the schedule takes only 2xx for delivered", () => {
    const of = (...statuses: number[]) => [...new Set(statuses.map(outcomeOf))];
    expect(of(200, 201, 204, 299)).toEqual([DELIVERED]);
    expect(of(300, 301, 302, 304, 308)).toEqual([AttemptOutcome.REDIRECTED]);
    expect(of(400, 401, 404, 409, 429)).toEqual([AttemptOutcome.REFUSED]);
    expect(of(410)).toEqual([GONE]);
    expect(of(500, 503, 599, 600, 999)).toEqual([SERVER_ERROR]);
  });
});
