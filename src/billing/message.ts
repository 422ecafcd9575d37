/** Turns rows of billing into messages of the contract. */
import type { AttemptRow } from "./calls/call-row.ts";
import { create } from "@bufbuild/protobuf";
import { durationFromMs, timestampFromDate } from "@bufbuild/protobuf/wkt";
import {
  type Balance,
  BalanceSchema,
  type LedgerEntry,
  LedgerEntrySchema,
  type LedgerKind,
} from "../../gen/uas/billing/v1/billing_pb.ts";
import { type CallRecord, CallRecordSchema } from "../../gen/uas/billing/v1/call_pb.ts";
import { errorCodeOf } from "../core/error-words.ts";
import { money } from "../core/money.ts";
import { rareQuantities, refusedUnit } from "./calls/call-record.ts";
import type { CallRow } from "./calls/call-row.ts";
import type { RowOf } from "../db/row.ts";
import type { BalanceEntity, BookingEntity, LedgerSideEntity } from "./entity.ts";
import type { CallEntity } from "./calls/entity.ts";

/** The two columns of a balance, as the driver gives bigint. */
export type BalanceRow = RowOf<typeof BalanceEntity, "available" | "held">;

/** A customer's entry, and the reason of its booking. */
export type EntryRow = RowOf<
  typeof LedgerSideEntity,
  "txn_id" | "kind" | "amount" | "reference" | "create_time" | "balance_after"
> &
  RowOf<typeof BookingEntity, "reason">;

/** A row of the call table, as the driver gives it. */
export type StoredCallRow = Omit<CallRow, "start_time" | "second_micros"> &
  RowOf<typeof CallEntity, "start_time" | "second_micros">;

/** A balance. @param row `undefined`: the account has no ledger entry yet */
export function balanceMessage(accountId: string, row: BalanceRow | undefined): Balance {
  const available = BigInt(row?.available ?? 0);
  const held = BigInt(row?.held ?? 0);
  return create(BalanceSchema, {
    accountId,
    balance: money(available + held),
    held: money(held),
    available: money(available),
  });
}

/** A ledger entry as its customer sees it. */
export function entryMessage(row: EntryRow): LedgerEntry {
  return create(LedgerEntrySchema, {
    transactionId: row.txn_id,
    kind: row.kind as LedgerKind,
    amount: money(BigInt(row.amount)),
    reference: row.reference ?? "",
    createTime: timestampFromDate(row.create_time),
    reason: row.reason ?? "",
    ...(row.balance_after !== null && { balanceAfter: money(BigInt(row.balance_after)) }),
  });
}

/** The record of a call with what only operators see: the credentials and costs of its attempts. */
export function operatorCallMessage(row: StoredCallRow): CallRecord {
  const message = callMessage(row);
  for (const [index, { credential, vendor_cost: cost }] of failedAttempts(row).entries()) {
    const attempt = message.attempts[index];
    if (attempt === undefined) continue;
    attempt.credential = credential ?? "";
    if (cost !== undefined) attempt.vendorCost = money(BigInt(cost));
  }
  return message;
}

/** The attempts that failed; the last one of a record may be the answered one. */
function failedAttempts({ attempts }: StoredCallRow): readonly AttemptRow[] {
  return (attempts ?? []).filter(({ error_code: code }) => code !== undefined);
}

/** The record of a call. */
export function callMessage(row: StoredCallRow): CallRecord {
  return create(CallRecordSchema, {
    ...plainFieldsOf(row),
    callId: row.id,
    errorCode: errorCodeOf(row.error_code, row.status),
    usage: {
      inputTokens: row.input_tokens,
      cachedInputTokens: row.cached_input_tokens,
      cacheWriteTokens: row.cache_write_tokens,
      outputTokens: row.output_tokens,
      reasoningTokens: row.reasoning_tokens,
      ...rareQuantities(row.units),
    },
    refusedCount: row.units?.[refusedUnit] ?? 0,
    cost: money(BigInt(row.cost)),
    startTime: timestampFromDate(row.start_time),
    duration: durationFromMs(row.duration_ms),
    ...(row.first_byte_ms > 0 && { firstContentDuration: durationFromMs(row.first_byte_ms) }),
    dropped: row.dropped ? row.dropped.split(",") : [],
    held: money(BigInt(row.held)),
    attempts: failedAttempts(row).map((each) => ({
      vendor: each.vendor,
      vendorModel: each.model ?? "",
      errorCode: errorCodeOf(each.error_code ?? ""),
      ...(each.duration_ms > 0 && { duration: durationFromMs(each.duration_ms) }),
    })),
  });
}

/** Fields of the contract that are a column: same name, same value. */
const plainFields = CallRecordSchema.fields.filter(
  ({ fieldKind, name }) =>
    fieldKind === "scalar" || (fieldKind === "enum" && name !== "error_code"),
);

function plainFieldsOf(row: object): object {
  const columns = new Map<string, unknown>(Object.entries(row));
  return Object.fromEntries(
    plainFields.map(({ localName, name }) => [localName, columns.get(name) ?? undefined]),
  );
}
