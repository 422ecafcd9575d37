/** Receipts of calls: what a call cost, and why. */
import { create } from "@bufbuild/protobuf";
import { timestampFromDate, timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { HandlerContext } from "@connectrpc/connect";
import type { LedgerKind } from "../../../gen/uas/billing/v1/billing_pb.ts";
import type { GetCallRequest } from "../../../gen/uas/billing/v1/call_service_pb.ts";
import {
  type HoldEvent,
  HoldEventKind,
  HoldEventSchema,
  PriceUnit as UnitWord,
  type Receipt,
  type ReceiptEntry,
  ReceiptEntrySchema,
  type ReceiptLine,
  ReceiptLineSchema,
  ReceiptSchema,
} from "../../../gen/uas/billing/v1/receipt_pb.ts";
import type { PriceConfig } from "../../config/config.ts";
import { isPerMillion, priceUnits } from "../../config/price-units.ts";
import { isOperator } from "../../core/caller-rules.ts";
import { ErrorCode, GatewayError } from "../../core/errors.ts";
import { formatDecimal, formatUsd, money } from "../../core/money.ts";
import type { Queryable } from "../../db/pool/queryable.ts";
import type { RowOf } from "../../db/row.ts";
import { Where } from "../../db/where.ts";
import type { HoldStepEntity, LedgerSideEntity } from "../entity.ts";
import { callMessage, operatorCallMessage, type StoredCallRow } from "../message.ts";
import { type CanonicalPrice, parsePrice } from "../prices/price-form.ts";
import { priceMessage } from "../../config/price-message.ts";
import {
  callCost,
  type CallUsage,
  type PriceLine,
  priceLines,
  quantityPerPrice,
  tierOf,
} from "../prices/cost.ts";
import { parseScope } from "../scope.ts";
import { rareQuantities } from "./call-record.ts";
import { addRequestId } from "./filter.ts";

/** Reads a receipt, as far as its caller may see it. @throws GatewayError NOT_FOUND */
export async function getReceipt(
  pool: Queryable,
  request: GetCallRequest,
  context: Pick<HandlerContext, "values">,
): Promise<Receipt> {
  const accountId = parseScope(request.accountId, context);
  const callId = request.call.case === "callId" ? request.call.value : undefined;
  const requestId = request.call.case === "requestId" ? request.call.value : "";
  // No call has such an id, and the database would not even compare it.
  const rows = requestId.includes("\0")
    ? undefined
    : await readReceipt(pool, { accountId, callId, requestId });
  if (rows === undefined) {
    throw new GatewayError(ErrorCode.NOT_FOUND, "there is no such call: check call_id");
  }
  return receiptMessage(rows, isOperator(context));
}

/** The units by their keys. */
const unitOf = new Map(priceUnits.map((unit) => [unit.key, unit]));

/** Decimal places of a line's amount in USD: it counts in millionths of a nano-USD. */
const linePlaces = 15;

/** Decimal places of a discount: it counts in ten-thousandths of these. */
const discountPlaces = linePlaces + 4;

/** The receipt. @param withCost whether its reader may see the vendor's charge */
export function receiptMessage(rows: ReceiptRows, withCost: boolean): Receipt {
  const { call } = rows;
  const price = rows.price && parsePrice(rows.price);
  const { isCharged, lines, recomputed } = recompute(call, price);
  const parts = lines.reduce((sum, { amountMillionths }) => sum + amountMillionths, 0n);
  const vendorCost = withCost ? (call.vendor_cost ?? undefined) : undefined;
  return create(ReceiptSchema, {
    call: withCost ? operatorCallMessage(call) : callMessage(call),
    charged: isCharged,
    price: price && priceMessage(price),
    tierAbove: price && tierOf(price, call.input_tokens)?.above,
    lines: lines.map(lineMessage),
    subtotal: formatDecimal(parts, linePlaces),
    discount: formatDecimal(parts * BigInt(call.discount_bp ?? 0), discountPlaces),
    amount: money(BigInt(call.cost)),
    recomputed: recomputed === undefined ? undefined : money(recomputed),
    shortfall: money(shortfallOf(rows.entries)),
    holds: holdEvents(rows),
    entries: rows.entries.filter(({ account }) => account === 1).map(entryMessage),
    vendorCost: vendorCost === undefined ? undefined : money(BigInt(vendorCost)),
  });
}

/** The columns of a call that its usage is in. */
export type UsageColumns = Pick<
  StoredCallRow,
  | "input_tokens"
  | "cached_input_tokens"
  | "cache_write_tokens"
  | "output_tokens"
  | "reasoning_tokens"
  | "images"
  | "second_micros"
  | "units"
>;

interface Recomputed {
  readonly isCharged: boolean;
  readonly lines: readonly PriceLine[];
  /** Undefined if the price is not known. */
  readonly recomputed: bigint | undefined;
}

const nothing: Recomputed = { isCharged: false, lines: [], recomputed: 0n };

function recompute(call: StoredCallRow, price: PriceConfig | undefined): Recomputed {
  // Records of older versions lack it: their charge is 0 only for free models.
  const isCharged = call.charged ?? call.cost !== "0";
  if (!isCharged) return nothing;
  if (price === undefined) return { isCharged, lines: [], recomputed: undefined };
  const usage = usageOf(call);
  const recomputed = callCost(price, usage, call.discount_bp ?? 0);
  // The settlement of a hold that had never been made charges nothing, whatever its record said.
  if (call.cost === "0" && call.held === "0" && recomputed > 0n) return nothing;
  return { isCharged, lines: priceLines(price, usage), recomputed };
}

/** The usage of a recorded call, as it was charged. */
export function usageOf(call: UsageColumns): CallUsage {
  return {
    inputTokens: call.input_tokens,
    cachedInputTokens: call.cached_input_tokens,
    cacheWriteTokens: call.cache_write_tokens,
    outputTokens: call.output_tokens,
    reasoningTokens: call.reasoning_tokens,
    images: call.images ?? 0,
    seconds: Number(call.second_micros ?? 0) / 1_000_000,
    ...rareQuantities(call.units),
  };
}

function lineMessage({ unit, quantity, priceNanos, amountMillionths }: PriceLine): ReceiptLine {
  const isMillion = isPerMillion(unit);
  return create(ReceiptLineSchema, {
    unit: unitOf.get(unit)?.word ?? UnitWord.UNSPECIFIED,
    quantity: isMillion ? quantity.toString() : formatDecimal(quantity, 6),
    price: formatUsd(priceNanos),
    per: isMillion ? Number(quantityPerPrice) : 1,
    amount: formatDecimal(amountMillionths, linePlaces),
  });
}

/**
 * Returns the amount that the platform's loss account (6) covered: its entries are negative if it
 * paid.
 */
function shortfallOf(entries: readonly ReceiptEntryRow[]): bigint {
  return entries
    .filter(({ account }) => account === 6)
    .reduce((sum, { amount }) => sum - BigInt(amount), 0n);
}

const endKinds: Readonly<Record<number, HoldEventKind>> = {
  2: HoldEventKind.SETTLED,
  3: HoldEventKind.RELEASED,
  4: HoldEventKind.EXPIRED,
};

function holdEvents({ call, hold, steps, entries }: ReceiptRows): HoldEvent[] {
  if (hold === undefined) return [];
  const growth = steps.reduce((sum, { amount }) => sum + BigInt(amount), 0n);
  let held = BigInt(hold.amount) - growth;
  const startMs = call.start_time.getTime();
  const events = [holdEvent(HoldEventKind.HELD, held, startMs)];
  for (const { amount, create_time: time } of steps) {
    held += BigInt(amount);
    events.push(holdEvent(HoldEventKind.GROWN, held, time.getTime()));
  }
  const kind = endKinds[hold.state];
  if (kind === undefined) return events;
  const charged = entries.find(({ txn_id: id }) => id === call.id)?.create_time.getTime();
  return [...events, holdEvent(kind, 0n, charged ?? startMs + call.duration_ms)];
}

function holdEvent(kind: HoldEventKind, held: bigint, timeMs: number): HoldEvent {
  return create(HoldEventSchema, { kind, held: money(held), time: timestampFromMs(timeMs) });
}

function entryMessage(row: ReceiptEntryRow): ReceiptEntry {
  const amount = BigInt(row.amount);
  const after = row.balance_after === null ? undefined : BigInt(row.balance_after);
  return create(ReceiptEntrySchema, {
    transactionId: row.txn_id,
    kind: row.kind as LedgerKind,
    amount: money(amount),
    balanceBefore: after === undefined ? undefined : money(after - amount),
    balanceAfter: after === undefined ? undefined : money(after),
    createTime: timestampFromDate(row.create_time),
    reference: row.reference ?? "",
  });
}

/** A call with its price, hold and entries. */
interface ReceiptRows {
  readonly call: StoredCallRow;
  /** The stored form of the price that the call was held with; undefined if nothing was held. */
  readonly price: CanonicalPrice | undefined;
  /** Undefined if nothing was held. */
  readonly hold: HoldRow | undefined;
  readonly steps: readonly StepRow[];
  readonly entries: readonly ReceiptEntryRow[];
}

/** The hold of a call, from the view `hold`. */
interface HoldRow {
  readonly amount: string;
  /** 1 open, 2 settled, 3 released, 4 ended for a process that was lost. */
  readonly state: number;
}

/** One extension of a hold. */
type StepRow = RowOf<typeof HoldStepEntity, "amount" | "create_time">;

/** An entry of the customer's account (1), or of the platform's loss (6). */
type ReceiptEntryRow = RowOf<
  typeof LedgerSideEntity,
  "txn_id" | "account" | "kind" | "amount" | "balance_after" | "create_time" | "reference"
>;

/** A call by its own id, or the newest one of a request id; of one account, or of any. */
interface ReceiptQuery {
  readonly accountId: string | undefined;
  readonly callId: string | undefined;
  readonly requestId: string;
}

const sql = {
  price: "select price from price_version where version = $1",
  hold: "select amount, state from hold where id = $1 and account_id = $2",
  steps: "select amount, create_time from hold_step where hold_id = $1 order by n",
  // Apart, each by its own index: with "or" every partition would be read.
  entries: `
select txn_id, account, kind, amount, balance_after, create_time, reference from (
  select * from ledger_entry where txn_id = $1 and account_id = $2
  union all
  select * from ledger_entry where call_id = $1 and account_id = $2
  union all
  select e.* from booking b join ledger_entry e on e.txn_id = b.txn_id
    where b.call_id = $1 and b.account_id = $2 and e.account_id = $2
) e where account in (1, 6) order by create_time, txn_id`,
} as const;

/** Reads the rows of a receipt; `undefined` if there is no such call. */
async function readReceipt(
  pool: Queryable,
  { accountId, callId, requestId }: ReceiptQuery,
): Promise<ReceiptRows | undefined> {
  const where = new Where().and("account_id = ?", accountId);
  if (callId === undefined) addRequestId(where, requestId);
  else where.and("id = ?", callId);
  const found = await pool.query<StoredCallRow>(
    `select * from call where ${where.text} order by id desc limit 1`,
    where.values,
  );
  const [call] = found.rows;
  if (call === undefined) return undefined;
  const [prices, holds, steps, entries] = await Promise.all([
    pool.query<{ price: CanonicalPrice }>(sql.price, [call.price_version]),
    pool.query<HoldRow>(sql.hold, [call.id, call.account_id]),
    pool.query<StepRow>(sql.steps, [call.id]),
    pool.query<ReceiptEntryRow>(sql.entries, [call.id, call.account_id]),
  ]);
  return {
    call,
    price: prices.rows[0]?.price,
    hold: holds.rows[0],
    steps: steps.rows,
    entries: entries.rows,
  };
}
