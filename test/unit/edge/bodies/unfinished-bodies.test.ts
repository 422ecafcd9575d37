/** Budgets and rates of request bodies, with simulated time. */
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import {
  anonymousMessageBytesMax,
  bodyBytesPerSecondMin,
  bodyGraceMs,
  unfinishedBodyBytesMax,
} from "../../../../src/core/limits.ts";
import type { Caller } from "../../../../src/core/caller.ts";
import { ErrorCode, GatewayError } from "../../../../src/core/errors.ts";
import {
  UnfinishedBodies,
  type UnfinishedBody,
} from "../../../../src/edge/bodies/unfinished-bodies.ts";

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
  const onRefused = (): void => {};

  it("a key that is over its budget gets 429, other keys of its account do not, and closing frees it", () => {
    let refusals = 0;
    const bodies = new UnfinishedBodies(() => void refusals++);
    const one = bodies.open({ caller: callerOf("a", "k1"), onRefused });
    one.keep(unfinishedBodyBytesMax.key);
    const next = bodies.open({ caller: callerOf("a", "k1"), onRefused });
    expect(refusalOf(next, 1)).toMatchObject({
      code: ErrorCode.RATE_LIMIT_EXCEEDED,
      status: 429,
      retryAfterSeconds: 1,
      message: expect.stringContaining("64 MiB for this API key") as string,
    });
    expect(refusals).toBe(1);
    expect(refusalOf(bodies.open({ caller: callerOf("a", "k2"), onRefused }), 1)).toBeUndefined();
    one.close();
    expect(refusalOf(next, 1)).toBeUndefined();
  });

  it("an account is bounded over all its keys, a connection over all its requests", () => {
    const bodies = new UnfinishedBodies();
    for (const key of ["k1", "k2"]) {
      bodies.open({ caller: callerOf("a", key), onRefused }).keep(unfinishedBodyBytesMax.key);
    }
    const third = bodies.open({ caller: callerOf("a", "k3"), onRefused });
    expect(refusalOf(third, 1)?.message).toContain("for this account");
    const connection = {};
    bodies
      .open({ caller: undefined, connection, onRefused })
      .keep(unfinishedBodyBytesMax.connection);
    const other = bodies.open({ caller: undefined, connection, onRefused });
    expect(refusalOf(other, 1)?.message).toContain("for this connection");
  });

  it("a process is bounded over all accounts, with 503, and counts exactly", () => {
    const bodies = new UnfinishedBodies();
    const open = Array.from({ length: unfinishedBodyBytesMax.process / (32 * mib) }, (_, i) => {
      const body = bodies.open({ caller: callerOf(`a${i}`, `k${i}`), onRefused });
      body.keep(32 * mib);
      return body;
    });
    expect(bodies.bytes).toBe(unfinishedBodyBytesMax.process);
    // Its account holds as much as any other.
    const more = bodies.open({ caller: callerOf("a1", "k"), onRefused });
    expect(refusalOf(more, 1)).toMatchObject({ code: ErrorCode.SERVICE_UNAVAILABLE, status: 503 });
    for (const body of open) body.close();
    // Closing twice gives nothing back twice.
    open[0]?.close();
    expect(bodies.bytes).toBe(0);
  });
});

describe("whose bodies make room when the process has none (R-AUTH-7)", () => {
  /** Fills the process. @returns the errors of bodies that were ended, by account */
  function fill(bodies: UnfinishedBodies, accounts: readonly string[]): Array<[string, number]> {
    const ended: Array<[string, number]> = [];
    let left: number = unfinishedBodyBytesMax.process;
    for (let i = 0; left > 0; i++) {
      const accountId = accounts[i % accounts.length] as string;
      const bytes = Math.min(left, (i + 1) * mib);
      left -= bytes;
      const caller: Caller = { kind: "session", accountId };
      const onRefused = ({ status }: GatewayError): void => void ended.push([accountId, status]);
      bodies.open({ caller, onRefused }).keep(bytes);
    }
    return ended;
  }

  it("accounts that use the process up make room for one that holds less: the largest body of the one with most goes", () => {
    let refusals = 0;
    const bodies = new UnfinishedBodies(() => void refusals++);
    const ended = fill(bodies, ["free1", "free2", "free3"]);
    const paid = bodies.open({ caller: callerOf("paid", "k"), onRefused: () => {} });
    expect(refusalOf(paid, 20 * mib)).toBeUndefined();
    expect(ended).toEqual([["free1", 503]]);
    expect(refusals).toBe(1);
    expect(bodies.bytes).toBeLessThanOrEqual(unfinishedBodyBytesMax.process);
    const before = bodies.bytes;
    paid.close();
    expect(bodies.bytes).toBe(before - 20 * mib);
  });

  it("however many uploads an account has, another always gets its share", () => {
    const bodies = new UnfinishedBodies();
    const accounts = Array.from({ length: 7 }, (_, i) => `free${i}`);
    fill(bodies, accounts);
    let paidBytes = 0;
    for (; paidBytes < unfinishedBodyBytesMax.process / 8; paidBytes += mib) {
      const body = bodies.open({ caller: callerOf("paid", "k"), onRefused: () => {} });
      expect(refusalOf(body, mib)).toBeUndefined();
    }
  });

  it("all anonymous callers share one budget, so that none of theirs ends a customer's upload", () => {
    const bodies = new UnfinishedBodies();
    const caller: Caller = { kind: "anonymous" };
    for (let left: number = unfinishedBodyBytesMax.anonymous; left > 0; left -= 64 * 1024) {
      bodies.open({ caller, onRefused: () => {} }).keep(64 * 1024);
    }
    const next = bodies.open({ caller, onRefused: () => {} });
    expect(refusalOf(next, 1)?.message).toContain("32 MiB for callers without a key or session");
    const long = bodies.open({ caller, onRefused: () => {} });
    expect(refusalOf(long, anonymousMessageBytesMax + 1)).toMatchObject({ status: 413 });
  });
});

describe("the minimum rate of bodies", () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  it("a body that drips is ended with 408 after the grace, once", () => {
    const failures: GatewayError[] = [];
    const body = new UnfinishedBodies().open({ onRefused: (error) => void failures.push(error) });
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
    const body = bodies.open({ onRefused: () => void slow++ });
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
