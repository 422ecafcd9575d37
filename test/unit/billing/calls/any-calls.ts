/** Calls of any time that ended in any way, made as processes make them. */
import { randomUUIDv7 } from "node:crypto";
import * as fc from "fast-check";
import { CallEnding } from "../../../../gen/uas/billing/v1/call_pb.ts";
import type { CallRow } from "../../../../src/billing/calls/call-row.ts";
import { callsJson } from "../../../../src/billing/calls/call-columns.ts";
import { firstId } from "../../../../src/db/partition.ts";
import { callRow } from "./call-row.ts";
import type { Billing } from "../harness.ts";

/** A call, and how it came into the books. */
export interface AnyCall {
  readonly startMs: number;
  /**
   * settled: in the ordinary way. lost: by a sweep. late: by a sweep first. refused: before a hold.
   */
  readonly way: "settled" | "lost" | "late" | "refused";
  readonly cost: bigint;
  readonly record: Partial<CallRow>;
}

/** The ids of keys that calls are made with; the first: without one. */
export const keyIds = ["", randomUUIDv7(), randomUUIDv7()];

const count = fc.integer({ min: 0, max: 1_000_000 });

/** Calls within a range of time, in milliseconds since 1970. */
export function anyCall(fromMs: number, toMs: number): fc.Arbitrary<AnyCall> {
  const record = fc.record({
    key_id: fc.constantFrom(...keyIds),
    model: fc.constantFrom("", "fast-1", "slow-2", "vendor/third"),
    ending: fc.constantFrom(
      CallEnding.COMPLETED,
      CallEnding.UPSTREAM_FAILED,
      CallEnding.CLIENT_GONE,
      CallEnding.CANCELLED,
    ),
    status: fc.constantFrom(200, 402, 404, 499, 502),
    error_code: fc.constantFrom("", "upstream_error", "model_not_found"),
    input_tokens: count,
    output_tokens: count,
    images: fc.option(fc.integer({ min: 0, max: 9 })),
    second_micros: fc.option(count),
    vendor_cost: fc.option(fc.integer({ min: 1, max: 900 }).map(String)),
  });
  return fc.record({
    startMs: fc.integer({ min: fromMs, max: toMs - 1 }),
    way: fc.constantFrom("settled", "settled", "lost", "late", "refused"),
    cost: fc.bigInt({ min: 0n, max: 500n }),
    record,
  });
}

/** A UUIDv7 of a moment. */
export function idAt(startMs: number): string {
  return firstId(new Date(startMs)).slice(0, 13) + randomUUIDv7().slice(13);
}

/** Brings calls of one account into the books. Returns their ids. */
export async function makeCalls(
  billing: Billing,
  accountId: string,
  calls: readonly AnyCall[],
): Promise<string[]> {
  const made = calls.map((call) => ({ ...call, id: idAt(call.startMs) }));
  const rowOf = ({ id, cost, record }: (typeof made)[number]): CallRow =>
    callRow(id, accountId, { start_time: "2026-01-01T00:00:00Z", ...record, cost: `${cost}` });
  const refused = made.filter(({ way }) => way === "refused");
  const held = made.filter(({ way }) => way !== "refused");
  const swept = held.filter(({ way }) => way !== "settled");
  await billing.send({
    accountId,
    holds: held.map(({ id }) => ({ id, amountNanos: 400n })),
  });
  await billing.send({
    accountId,
    // Known when the process was lost: less than the real cost of the call, or nothing.
    extends: swept
      .filter(({ cost }) => cost % 2n === 0n)
      .map((call) => ({
        id: call.id,
        amountNanos: 0n,
        checkpointNanos: call.cost / 2n,
        record: rowOf(call),
      })),
  });
  const ids = swept.map(({ id }) => id);
  await billing.age(ids, 1);
  await billing.pool.query("select ledger_recover_holds($1, $2)", [accountId, ids]);
  await billing.send({
    accountId,
    settles: held
      .filter(({ way }) => way !== "lost")
      .map((call) => [call.id, call.cost, { ...rowOf(call), held: "400" }] as const),
  });
  await billing.pool.query("select call_write($1::json)", [
    callsJson(refused.map((call) => ({ ...rowOf(call), cost: "0", vendor_cost: null }))),
  ]);
  return made.map(({ id }) => id);
}
