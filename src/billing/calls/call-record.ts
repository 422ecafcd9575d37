/** Builds the record of a call or a task: the one place that does. Pure. */
import type { CallEnding } from "../../../gen/uas/billing/v1/call_pb.ts";
import { UsageSource } from "../../../gen/uas/type/v1/usage_pb.ts";
import { isoTime } from "../../core/iso-time.ts";
import { type RareQuantities, rareUnits, type RareUsage } from "../../config/price-units.ts";
import { secondMicros, type UnitUsage } from "../prices/cost.ts";
import type { AttemptRow, CallRow } from "./call-row.ts";
import { callText } from "./call-columns.ts";

/** The facts of a call or a task, when its record is written. */
export interface CallFacts {
  readonly id: string;
  /** The client's, as it was sent. */
  readonly requestId: string;
  readonly accountId: string;
  readonly keyId: string;
  /** As the client named it: may be an invention of the client if the call was refused. */
  readonly model: string;
  /** The vendor of the last attempt; empty if there was none. */
  readonly vendor: string;
  readonly path: string;
  readonly stream: boolean;
  readonly status: number;
  /** The documented word; empty if there is none. */
  readonly errorCode: string;
  readonly ending: CallEnding;
  readonly usageSource: UsageSource;
  /** Undefined if no consumption is known. */
  readonly usage: RecordedTokens | undefined;
  /** Billable units other than tokens; undefined if there is none. */
  readonly units: UnitUsage | undefined;
  readonly costNanos: bigint;
  /** Whether the usage is charged. */
  readonly isCharged: boolean;
  /** Price that the vendor charges the operator; undefined if unknown. */
  readonly vendorCostNanos: bigint | undefined;
  /** Undefined if nothing was held. */
  readonly heldNanos: bigint | undefined;
  readonly priceVersion: string;
  readonly startedAt: Date;
  readonly durationMs: number;
  /** 0 if no content came. */
  readonly firstByteMs: number;
  /** The vendor's own id of the request; empty if it sent none. */
  readonly upstreamRequestId: string;
  /** Members that could not be carried between two styles. */
  readonly dropped: readonly string[];
  /** The account's discount in hundredths of a percent. */
  readonly discountBp: number;
  /** Failed attempts, and the answered one if there was a choice; undefined if there is none. */
  readonly attempts: readonly AttemptRow[] | undefined;
}

/** Consumption, as records have it. */
export interface RecordedTokens extends RareQuantities {
  readonly inputTokens: number;
  readonly cachedInputTokens: number;
  readonly cacheWriteTokens: number;
  readonly outputTokens: number;
  readonly reasoningTokens: number;
}

/**
 * Builds the record. Texts of the client are cut here already: a record may wait a while for the
 * database.
 */
export function callRecord(facts: CallFacts): CallRow {
  const { usage, units, attempts } = facts;
  const row: CallRow = {
    id: facts.id,
    request_id: facts.requestId,
    account_id: facts.accountId,
    key_id: facts.keyId,
    model: callText(facts.model),
    vendor: facts.vendor,
    path: callText(facts.path),
    stream: facts.stream,
    status: facts.status,
    error_code: facts.errorCode,
    ending: facts.ending,
    usage_source: facts.usageSource,
    input_tokens: usage?.inputTokens ?? 0,
    cached_input_tokens: usage?.cachedInputTokens ?? 0,
    cache_write_tokens: usage?.cacheWriteTokens ?? 0,
    output_tokens: usage?.outputTokens ?? 0,
    reasoning_tokens: usage?.reasoningTokens ?? 0,
    cost: facts.costNanos.toString(),
    held: (facts.heldNanos ?? 0n).toString(),
    price_version: facts.priceVersion,
    start_time: isoTime(facts.startedAt.getTime()),
    duration_ms: Math.round(facts.durationMs),
    first_byte_ms: Math.round(facts.firstByteMs),
    upstream_request_id: callText(facts.upstreamRequestId),
    dropped: callText(facts.dropped.join(",")),
    discount_bp: facts.discountBp,
    charged: facts.isCharged,
    images: units?.images ?? null,
    second_micros: units?.seconds === undefined ? null : secondMicros(units.seconds),
    vendor_cost: facts.vendorCostNanos?.toString() ?? null,
  };
  // Left out if there are none: records of most calls are not longer for it.
  const rare = rareColumn(usage, units);
  if (attempts === undefined && rare === undefined) return row;
  return { ...row, ...(attempts && { attempts }), ...(rare && { units: rare }) };
}

/**
 * The record of a charge whose whole record the database refuses: who was charged, how much and
 * when.
 */
export function bareRecord({ ending, ...row }: CallRow): CallRow {
  return callRecord({
    id: row.id,
    requestId: "",
    accountId: row.account_id,
    keyId: row.key_id,
    model: "",
    vendor: "",
    path: "",
    stream: row.stream,
    status: 0,
    errorCode: "",
    ending,
    usageSource: UsageSource.UNSPECIFIED,
    usage: undefined,
    units: undefined,
    costNanos: BigInt(row.cost),
    isCharged: row.charged === true,
    vendorCostNanos: undefined,
    heldNanos: BigInt(row.held),
    priceVersion: "",
    startedAt: new Date(row.start_time),
    durationMs: 0,
    firstByteMs: 0,
    upstreamRequestId: "",
    dropped: [],
    discountBp: 0,
    attempts: undefined,
  });
}

/**
 * The column `units`: quantities of units that few calls use, by their names in `uas.yaml`;
 * undefined if there is none.
 */
function rareColumn(
  usage: RareQuantities | undefined,
  units: RareQuantities | undefined,
): Record<string, number> | undefined {
  let column: Record<string, number> | undefined;
  for (const { name, usage: member } of rareUnits) {
    const quantity = usage?.[member] ?? units?.[member];
    if (quantity === undefined || quantity <= 0) continue;
    column ??= {};
    column[name] = quantity;
  }
  return column;
}

/**
 * The member of the column `units` with the number of refused calls that share a record. Absent
 * from the record of one call.
 */
export const refusedUnit = "refused";

/** Reads the column `units`. */
export function rareQuantities(column: CallRow["units"]): RareQuantities {
  const quantities: { [Member in RareUsage]?: number } = {};
  if (column == null) return quantities;
  for (const { name, usage } of rareUnits) {
    const quantity = column[name];
    if (quantity !== undefined) quantities[usage] = quantity;
  }
  return quantities;
}
