/** The budgets of request bodies that are not complete (R-AUTH-7). */
import { expect, it } from "vitest";
import type { Caller } from "../../../../src/core/caller.ts";
import { ErrorCode, GatewayError } from "../../../../src/core/errors.ts";
import { anonymousMessageBytesMax, unfinishedBodyBytesMax } from "../../../../src/core/limits.ts";
import { type ArrivingBody, BodyBudget } from "../../../../src/edge/bodies/body-budget.ts";

const mib = 1024 * 1024;

function keyOf(keyId: string): Caller {
  return { kind: "key", accountId: "a", keyId, models: undefined };
}

function refusalOf(body: ArrivingBody, bytes: number): GatewayError | undefined {
  try {
    body.keep(bytes);
    return undefined;
  } catch (error) {
    if (error instanceof GatewayError) return error;
    throw error;
  }
}

it("a key that is over its budget gets 429, other keys do not, and closing frees it (R-AUTH-7)", () => {
  let refusals = 0;
  const budget = new BodyBudget(() => void refusals++);
  const first = budget.open(keyOf("k1"));
  first.keep(unfinishedBodyBytesMax.owner - mib);
  const next = budget.open(keyOf("k1"));
  expect(refusalOf(next, mib)).toMatchObject({
    code: ErrorCode.RATE_LIMIT_EXCEEDED,
    status: 429,
    retryAfterSeconds: 1,
    message: expect.stringContaining("64 MiB for this API key") as string,
  });
  expect(refusals).toBe(1);
  expect(refusalOf(budget.open(keyOf("k2")), mib)).toBeUndefined();
  first.close();
  expect(refusalOf(next, mib)).toBeUndefined();
});

it("the process is bounded over all callers, with 503, and counts exactly (R-AUTH-7)", () => {
  const budget = new BodyBudget();
  const bodies = Array.from({ length: unfinishedBodyBytesMax.process / (32 * mib) }, (_none, at) =>
    budget.open(keyOf(`k${at}`)),
  );
  for (const body of bodies) body.keep(32 * mib - 1_000);
  const more = budget.open({ kind: "session", accountId: "b" });
  expect(refusalOf(more, 20 * mib)).toMatchObject({
    code: ErrorCode.SERVICE_UNAVAILABLE,
    status: 503,
    message: expect.stringContaining("256 MiB for the gateway") as string,
  });
  for (const body of bodies) body.close();
  // Closing twice gives nothing back twice.
  bodies[0]?.close();
  expect(budget.bytes).toBe(0);
});

it("all callers without a key or session share one budget, and their messages are short (R-AUTH-7)", () => {
  const budget = new BodyBudget();
  const caller: Caller = { kind: "anonymous" };
  expect(refusalOf(budget.open(caller), anonymousMessageBytesMax + 1)).toMatchObject({
    status: 413,
  });
  let count = 0;
  while (refusalOf(budget.open(caller), anonymousMessageBytesMax) === undefined) count++;
  expect(count).toBeLessThanOrEqual(unfinishedBodyBytesMax.owner / anonymousMessageBytesMax);
  expect(budget.bytes).toBeLessThanOrEqual(unfinishedBodyBytesMax.owner);
});
