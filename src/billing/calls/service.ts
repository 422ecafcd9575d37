/** The RPCs of CallService: lists of calls, one call, the histogram, the live view, the export. */
import { setTimeout as delay } from "node:timers/promises";
import { create } from "@bufbuild/protobuf";
import {
  type Duration,
  durationMs,
  type Timestamp,
  timestampFromMs,
  timestampMs,
} from "@bufbuild/protobuf/wkt";
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import { LedgerKind } from "../../../gen/uas/billing/v1/billing_pb.ts";
import {
  type CallEvent,
  CallEventKind,
  CallEventSchema,
  type CallRecord,
} from "../../../gen/uas/billing/v1/call_pb.ts";
import {
  type CallService,
  type ExportCallsRequest,
  ExportCallsResponseSchema,
  GetCallResponseSchema,
  ListCallsResponseSchema,
  type TailCallsRequest,
  type TailCallsResponse,
  TailCallsResponseSchema,
} from "../../../gen/uas/billing/v1/call_service_pb.ts";
import { HoldEventKind, type Receipt } from "../../../gen/uas/billing/v1/receipt_pb.ts";
import type { Money } from "../../../gen/uas/type/v1/money_pb.ts";
import { tailMs, tailPauseMs, tailQuietMs } from "../../core/limits.ts";
import type { Clock } from "../../core/clock.ts";
import { readPage } from "../../core/pagination.ts";
import { isUuid } from "../../core/uuid.ts";
import { type Queryable, withLossMapping } from "../../db/pool/queryable.ts";
import { Where } from "../../db/where.ts";
import { callMessage, type StoredCallRow } from "../message.ts";
import { parseScope } from "../scope.ts";
import type { CallFeed } from "./feed.ts";
import { readCalls } from "./read.ts";
import { addIndexedConditions, addOtherConditions, type CallQuery, parseFilter } from "./filter.ts";
import { limitOf, parseRange } from "./range.ts";
import { getReceipt } from "./receipt-rpcs.ts";
import { countCalls } from "./call-counts.ts";
import { exportCalls } from "./call-export.ts";

interface CallServiceOptions {
  /** The plain pool of the database. */
  readonly pool: Queryable;
  readonly clock: Pick<Clock, "now">;
  /** Notifies live views of written calls. */
  readonly feed: CallFeed;
  /**
   * The longest silence of a live view: an empty message then keeps it open. Default `tailQuietMs`.
   */
  readonly quietMs?: number;
}

/** The default and the largest number of bars of a histogram. */
const barLimits = { usual: 60, most: 200 };

/** Creates the implementation of `uas.billing.v1.CallService`. */
export function createCallService(options: CallServiceOptions): ServiceImpl<typeof CallService> {
  const pool = withLossMapping(options.pool);
  return {
    async listCalls(request, context) {
      const query = parseFilter(parseScope(request.accountId, context), request.filter);
      const page = await readCalls(pool, query, readPage(request, { isKey: isUuid }));
      const { calls, nextPageToken } = page;
      return create(ListCallsResponseSchema, { calls: calls.map(callMessage), nextPageToken });
    },

    async getCall(request, context) {
      const receipt = await getReceipt(pool, request, context);
      const { call } = receipt;
      if (call === undefined) throw new Error("a receipt without its call");
      return create(GetCallResponseSchema, { call, receipt, events: callEvents(call, receipt) });
    },

    async getCallHistogram(request, context) {
      const accountId = parseScope(request.accountId, context);
      const calls = parseFilter(accountId, request.filter);
      const nowMs = options.clock.now();
      const range = parseRange(request.filter ?? {}, nowMs);
      const bars = limitOf(request.barLimit, barLimits);
      return countCalls(pool, { ...range, calls, bars, nowMs });
    },

    tailCalls: (request, context) => tail({ ...options, pool }, request, context),

    exportCalls: (request, context) => writeExport(pool, request, context),
  };
}

async function* tail(
  { pool, feed, quietMs = tailQuietMs }: CallServiceOptions,
  request: TailCallsRequest,
  context: HandlerContext,
): AsyncGenerator<TailCallsResponse> {
  const accountId = parseScope(request.accountId, context);
  const query = { ...parseFilter(accountId, request.filter), fromMs: undefined, toMs: undefined };
  const { signal } = context;
  using watch = await feed.watch(accountId, signal);
  yield create(TailCallsResponseSchema);
  const endMs = performance.now() + tailMs;
  while (!signal.aborted && performance.now() < endMs) {
    const { ids, skipped } = await watch.next(quietMs);
    const calls = await readWritten(pool, query, ids);
    yield create(TailCallsResponseSchema, {
      calls: calls.map(callMessage),
      skippedCount: skipped,
    });
    // Calls that are written during the pause share one message.
    if (ids.length > 0) await delay(tailPauseMs, undefined, { signal }).catch(() => {});
  }
}

async function readWritten(
  pool: Queryable,
  query: CallQuery,
  ids: readonly string[],
): Promise<readonly StoredCallRow[]> {
  if (ids.length === 0) return [];
  const where = new Where().and("id = any(?)", ids);
  addIndexedConditions(where, query);
  addOtherConditions(where, query);
  const text = `select * from call where ${where.text} order by id`;
  return (await pool.query<StoredCallRow>(text, where.values)).rows;
}

async function* writeExport(pool: Queryable, request: ExportCallsRequest, context: HandlerContext) {
  const accountId = parseScope(request.accountId, context);
  const query = parseFilter(accountId, request.filter);
  const { format, pageToken } = request;
  // A file about one account may be handed to its customer.
  const hasVendorCost = accountId === undefined;
  const asked = { query, format, pageToken, hasVendorCost };
  const pieces = exportCalls(pool, asked, context.signal);
  const encoder = new TextEncoder();
  for await (const { text, nextPageToken } of pieces) {
    yield create(ExportCallsResponseSchema, { data: encoder.encode(text), nextPageToken });
  }
}

const holdKinds: Readonly<Partial<Record<HoldEventKind, CallEventKind>>> = {
  [HoldEventKind.HELD]: CallEventKind.HELD,
  [HoldEventKind.GROWN]: CallEventKind.HOLD_GROWN,
};

const entryKinds: Readonly<Partial<Record<LedgerKind, CallEventKind>>> = {
  [LedgerKind.CHARGE]: CallEventKind.CHARGED,
  [LedgerKind.LATE_SETTLEMENT]: CallEventKind.CORRECTED,
  [LedgerKind.REFUND]: CallEventKind.REFUNDED,
};

/**
 * The events of a call, from its record and receipt. Events of the same moment keep the order of a
 * call's life.
 */
function callEvents(call: CallRecord, receipt: Receipt): CallEvent[] {
  const startMs = call.startTime === undefined ? 0 : timestampMs(call.startTime);
  const after = (duration: Duration | undefined): Timestamp =>
    timestampFromMs(startMs + (duration ? durationMs(duration) : 0));
  const events = [
    event(CallEventKind.STARTED, after(undefined)),
    ...receipt.holds.map(({ kind, time, held }) => event(holdKinds[kind], time, held)),
    event(
      call.firstContentDuration && CallEventKind.FIRST_CONTENT,
      after(call.firstContentDuration),
    ),
    event(CallEventKind.ENDED, after(call.duration)),
    ...receipt.entries.map(({ kind, createTime }) => event(entryKinds[kind], createTime)),
  ];
  return events
    .filter((each) => each !== undefined)
    .toSorted((a, b) => timeMs(a) - timeMs(b) || a.kind - b.kind);
}

function event(
  kind: CallEventKind | undefined,
  time: Timestamp | undefined,
  held?: Money,
): CallEvent | undefined {
  if (kind === undefined || time === undefined) return undefined;
  return create(CallEventSchema, { kind, time, ...(held && { held }) });
}

function timeMs({ time }: CallEvent): number {
  return time === undefined ? 0 : timestampMs(time);
}
