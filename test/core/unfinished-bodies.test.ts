/** Budgets and rates of request bodies, with simulated time. */
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import {
  bodyBytesPerSecondMin,
  bodyGraceMs,
  unfinishedBodyBytesMax,
} from "../../src/config/limits.ts";
import type { Caller } from "../../src/core/caller.ts";
import { ErrorCode, GatewayError } from "../../src/core/errors.ts";
import { UnfinishedBodies, type UnfinishedBody } from "../../src/core/unfinished-bodies.ts";

const mib = 1024 * 1024;

function callerOf(accountId: string, keyId: string): Caller {
  return { kind: "key", accountId, keyId, models: undefined };
}

function refusalOf(body: UnfinishedBody, bytes: number): GatewayError | undefined {
  try {
    body.keep(bytes);
    return undefined;
  } catch (error) {
    if (error instanceof GatewayError) return error;
    throw error;
  }
}

describe("the budgets of unfinished bodies (R-AUTH-7)", () => {
  const onSlow = (): void => {};

  it("a key that is over its budget gets 429, other keys of its account do not, and closing frees it", () => {
    let refusals = 0;
    const bodies = new UnfinishedBodies(() => void refusals++);
    const one = bodies.open({ caller: callerOf("a", "k1"), onSlow });
    one.keep(unfinishedBodyBytesMax.key);
    const next = bodies.open({ caller: callerOf("a", "k1"), onSlow });
    expect(refusalOf(next, 1)).toMatchObject({
      code: ErrorCode.RATE_LIMIT_EXCEEDED,
      status: 429,
      retryAfterSeconds: 1,
      message: expect.stringContaining("64 MiB for this API key") as string,
    });
    expect(refusals).toBe(1);
    expect(refusalOf(bodies.open({ caller: callerOf("a", "k2"), onSlow }), 1)).toBeUndefined();
    one.close();
    expect(refusalOf(next, 1)).toBeUndefined();
  });

  it("an account is bounded over all its keys, a connection over all its requests", () => {
    const bodies = new UnfinishedBodies();
    for (const key of ["k1", "k2"]) {
      bodies.open({ caller: callerOf("a", key), onSlow }).keep(unfinishedBodyBytesMax.key);
    }
    const third = bodies.open({ caller: callerOf("a", "k3"), onSlow });
    expect(refusalOf(third, 1)?.message).toContain("for this account");
    const connection = {};
    bodies.open({ caller: undefined, connection, onSlow }).keep(unfinishedBodyBytesMax.connection);
    const other = bodies.open({ caller: undefined, connection, onSlow });
    expect(refusalOf(other, 1)?.message).toContain("for this connection");
  });

  it("a process is bounded over all accounts, with 503, and counts exactly", () => {
    const bodies = new UnfinishedBodies();
    const open = Array.from({ length: unfinishedBodyBytesMax.process / (32 * mib) }, (_, i) => {
      const body = bodies.open({ caller: callerOf(`a${i}`, `k${i}`), onSlow });
      body.keep(32 * mib);
      return body;
    });
    expect(bodies.bytes).toBe(unfinishedBodyBytesMax.process);
    const more = bodies.open({ caller: callerOf("b", "k"), onSlow });
    expect(refusalOf(more, 1)).toMatchObject({ code: ErrorCode.SERVICE_UNAVAILABLE, status: 503 });
    for (const body of open) body.close();
    // Closing twice gives nothing back twice.
    open[0]?.close();
    expect(bodies.bytes).toBe(0);
  });
});

describe("the minimum rate of bodies", () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  it("a body that drips is ended with 408 after the grace, once", () => {
    const failures: GatewayError[] = [];
    const body = new UnfinishedBodies().open({ onSlow: (error) => void failures.push(error) });
    vi.advanceTimersByTime(bodyGraceMs);
    expect(failures).toEqual([]);
    body.keep(bodyBytesPerSecondMin);
    vi.advanceTimersByTime(1_000);
    expect(failures).toEqual([]);
    vi.advanceTimersByTime(5_000);
    expect(failures.map(({ status }) => status)).toEqual([408]);
  });

  it("a body that keeps the rate lives, also where its bytes are dropped; a closed one is forgotten", () => {
    let slow = 0;
    const bodies = new UnfinishedBodies();
    const body = bodies.open({ onSlow: () => void slow++ });
    for (let second = 0; second < 300; second++) {
      vi.advanceTimersByTime(1_000);
      body.drop(bodyBytesPerSecondMin);
    }
    body.close();
    vi.advanceTimersByTime(600_000);
    expect(slow).toBe(0);
    expect(vi.getTimerCount()).toBe(0);
  });
});
