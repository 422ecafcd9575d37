/** The RPCs of CallService: lists of calls, one call, the histogram, the live view, the export. */
import { setTimeout as delay } from "node:timers/promises";
import { create } from "@bufbuild/protobuf";
import {
  type Duration,
  durationFromMs,
  durationMs,
  type Timestamp,
  timestampFromMs,
  timestampMs,
} from "@bufbuild/protobuf/wkt";
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import { stringify } from "csv-stringify/sync";
import { LedgerKind } from "../../../gen/uas/billing/v1/billing_pb.ts";
import {
  CallEndingSchema,
  type CallEvent,
  CallEventKind,
  CallEventSchema,
  CallOutcome,
  type CallRecord,
  ExportFormat,
} from "../../../gen/uas/billing/v1/call_pb.ts";
import {
  type CallService,
  type ExportCallsRequest,
  ExportCallsResponseSchema,
  type GetCallHistogramResponse,
  GetCallHistogramResponseSchema,
  GetCallResponseSchema,
  ListCallsResponseSchema,
  type TailCallsRequest,
  type TailCallsResponse,
  TailCallsResponseSchema,
} from "../../../gen/uas/billing/v1/call_service_pb.ts";
import { HoldEventKind, type Receipt } from "../../../gen/uas/billing/v1/receipt_pb.ts";
import { UsageGroup, UsageMetric } from "../../../gen/uas/billing/v1/usage_pb.ts";
import type { Money } from "../../../gen/uas/type/v1/money_pb.ts";
import {
  exportRowsMax,
  histogramRowsMax,
  pageSizeMax,
  tailMs,
  tailPauseMs,
  tailQuietMs,
} from "../../core/limits.ts";
import type { Clock } from "../../core/clock.ts";
import { formatUsd } from "../../core/money.ts";
import { type Page, readPage } from "../../core/pagination.ts";
import { isUuid } from "../../core/uuid.ts";
import { type Queryable, withLossMapping } from "../../db/pool/queryable.ts";
import { Where } from "../../db/where.ts";
import { callMessage, type StoredCallRow } from "../message.ts";
import { parseScope } from "../scope.ts";
import { hourMs } from "./buckets.ts";
import type { CallFeed } from "./feed.ts";
import {
  addIndexedConditions,
  addOtherConditions,
  type CallQuery,
  parseFilter,
  findFloor,
  readCalls,
  timeOf,
} from "./read.ts";
import { limitOf, parseRange, type Range, summedUntilMs } from "./range.ts";
import { getReceipt } from "./receipt-rpcs.ts";
import { isFailed, queryUsage } from "./usage-service.ts";

interface CallServiceOptions {
  /** The plain pool of the database. */
  readonly pool: Queryable;
  readonly clock: Pick<Clock, "now">;
  /** Notifies live views of written calls. */
  readonly feed: CallFeed;
  /** The longest silence of a live view, in milliseconds: an empty message then keeps it open. Default `tailQuietMs`. */
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
  const pieces = exportCalls(pool, { query, format, pageToken }, context.signal);
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

/** The events of a call, from its record and receipt. Events of the same moment keep the order of a call's life. */
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

// Counts calls over time: from the hourly sums where these suffice, otherwise from the newest calls.

/** The calls to count, and the bars to count them in. */
interface HistogramQuery extends Range {
  /** Its times are those of the range. */
  readonly calls: CallQuery;
  /** The most bars. */
  readonly bars: number;
  readonly nowMs: number;
}

/** The possible lengths of bars, in milliseconds. */
const barLengthsMs = [1, 5, 15, 60, 300, 900, 3_600, 10_800, 21_600, 43_200, 86_400, 604_800].map(
  (seconds) => seconds * 1_000,
);
const longestMs = 604_800_000;

interface BarCount {
  readonly bucket: number;
  readonly succeeded: bigint;
  readonly failed: bigint;
}

/** Counts succeeded and failed calls in bars of equal length. */
async function countCalls(
  pool: Queryable,
  query: HistogramQuery,
): Promise<GetCallHistogramResponse> {
  const { fromMs, toMs } = query;
  const barMs = barLength(query);
  const firstMs = Math.floor(fromMs / barMs) * barMs;
  const startsMs = Array.from(
    { length: Math.ceil((toMs - firstMs) / barMs) },
    (_, index) => firstMs + index * barMs,
  );
  const isSummed = barMs >= hourMs && isCoveredBySums(query.calls);
  const counted = isSummed
    ? { bars: await sumBars(pool, query, startsMs), fromMs }
    : await countBars(pool, query, startsMs);
  return create(GetCallHistogramResponseSchema, {
    bars: counted.bars.map(({ bucket, succeeded, failed }) => ({
      time: timestampFromMs(startsMs[bucket] ?? 0),
      succeededCount: succeeded,
      failedCount: failed,
    })),
    barDuration: durationFromMs(barMs),
    countedFromTime: timestampFromMs(counted.fromMs),
    toTime: timestampFromMs(toMs),
  });
}

/** The shortest bar length that needs no more than the wanted number of bars; multiples of a week for longer ranges. */
function barLength({ fromMs, toMs, bars }: HistogramQuery): number {
  const fits = (barMs: number): boolean =>
    Math.ceil(toMs / barMs) - Math.floor(fromMs / barMs) <= bars;
  const found = barLengthsMs.find(fits);
  if (found !== undefined) return found;
  let weeks = 2;
  while (!fits(weeks * longestMs)) weeks++;
  return weeks * longestMs;
}

function isCoveredBySums({ requestId, others }: CallQuery): boolean {
  return requestId === undefined && others.length === 0;
}

async function sumBars(
  pool: Queryable,
  { calls, fromMs, toMs, nowMs }: HistogramQuery,
  startsMs: readonly number[],
): Promise<readonly BarCount[]> {
  const { accountId, model, keyId, outcome } = calls;
  const rows = await queryUsage(pool, {
    accountId,
    model,
    keyId,
    fromMs,
    toMs: summedUntilMs(toMs, nowMs),
    startsMs,
    group: UsageGroup.NONE,
    groupLimit: 1,
    metric: UsageMetric.CALLS,
    withLosses: false,
  });
  return rows
    .map((row) => {
      const failed = outcome === CallOutcome.SUCCEEDED ? 0n : BigInt(row.failed_calls);
      const succeeded = BigInt(row.calls) - BigInt(row.failed_calls);
      const shown = outcome === CallOutcome.FAILED ? 0n : succeeded;
      return { bucket: row.bucket, succeeded: shown, failed };
    })
    .filter(({ succeeded, failed }) => succeeded + failed > 0n);
}

async function countBars(
  pool: Queryable,
  { calls, fromMs, toMs }: HistogramQuery,
  startsMs: readonly number[],
): Promise<{ readonly bars: readonly BarCount[]; readonly fromMs: number }> {
  const query = { ...calls, fromMs, toMs };
  const floor = await findFloor(pool, query, { after: undefined, rows: histogramRowsMax });
  const where = new Where();
  addIndexedConditions(where, query);
  addOtherConditions(where, query);
  where.and("id >= ?", floor);
  const starts = where.value(startsMs);
  const { rows } = await pool.query<{ bucket: number; failed: string; calls: string }>(
    `select width_bucket(('x' || translate(left(id::text, 13), '-', ''))::bit(48)::bigint,
         ${starts}::bigint[]) - 1 as bucket,
       count(*) filter (where ${isFailed}) as failed, count(*) as calls
     from call where ${where.text} group by 1 order by 1`,
    where.values,
  );
  const bars = rows.map((row) => ({
    bucket: row.bucket,
    failed: BigInt(row.failed),
    succeeded: BigInt(row.calls) - BigInt(row.failed),
  }));
  return { bars, fromMs: floor === undefined ? fromMs : timeOf(floor) };
}

// Exports calls as CSV or JSON lines, in pieces that fit a stream.

/** A piece of a file. */
interface ExportPiece {
  readonly text: string;
  /** Where the next file begins, where the log has more calls than one has; else empty. */
  readonly nextPageToken: string;
}

/** What to write. */
interface ExportQuery {
  readonly query: CallQuery;
  readonly format: ExportFormat;
  /** Of the file before; empty: the first. */
  readonly pageToken: string;
}

/** Exports calls; without any call, CSV has its header line alone. @param signal ends the export early */
async function* exportCalls(
  pool: Queryable,
  { query, format, pageToken: first }: ExportQuery,
  signal: AbortSignal,
): AsyncGenerator<ExportPiece> {
  const write = format === ExportFormat.JSON ? jsonLines : csvLines;
  let pageToken = first;
  let left = exportRowsMax;
  const head = format === ExportFormat.JSON ? "" : csv([columns]);
  let page = await readCalls(pool, query, pageOf(pageToken, left));
  yield { text: head + write(page.calls), nextPageToken: "" };
  while (page.nextPageToken !== "" && !signal.aborted) {
    left -= page.calls.length;
    ({ nextPageToken: pageToken } = page);
    if (left === 0) {
      yield { text: "", nextPageToken: pageToken };
      return;
    }
    page = await readCalls(pool, query, pageOf(pageToken, left));
    if (page.calls.length > 0) yield { text: write(page.calls), nextPageToken: "" };
  }
}

function pageOf(pageToken: string, left: number): Page {
  return readPage({ pageSize: Math.min(pageSizeMax, left), pageToken }, { isKey: isUuid });
}

const endingNames = new Map(
  CallEndingSchema.values.map(({ number, name }) => [
    number,
    name.slice("CALL_ENDING_".length).toLowerCase(),
  ]),
);

/** A call with the column names of the command line. */
function line(row: StoredCallRow) {
  return {
    startedAt: row.start_time.toISOString(),
    callId: row.id,
    requestId: row.request_id,
    accountId: row.account_id,
    keyId: row.key_id,
    model: row.model,
    vendor: row.vendor,
    path: row.path,
    stream: row.stream,
    status: row.status,
    errorCode: row.error_code,
    ending: endingNames.get(row.ending) ?? "",
    inputTokens: row.input_tokens,
    cachedInputTokens: row.cached_input_tokens,
    cacheWriteTokens: row.cache_write_tokens,
    outputTokens: row.output_tokens,
    reasoningTokens: row.reasoning_tokens,
    images: row.images ?? 0,
    seconds: Number(row.second_micros ?? 0) / 1_000_000,
    cost: formatUsd(BigInt(row.cost)),
    currency: "USD",
    priceVersion: row.price_version,
    durationMs: row.duration_ms,
    firstByteMs: row.first_byte_ms,
  };
}

const columns: readonly (keyof ReturnType<typeof line>)[] = [
  "startedAt",
  "callId",
  "requestId",
  "accountId",
  "keyId",
  "model",
  "vendor",
  "path",
  "stream",
  "status",
  "errorCode",
  "ending",
  "inputTokens",
  "cachedInputTokens",
  "cacheWriteTokens",
  "outputTokens",
  "reasoningTokens",
  "images",
  "seconds",
  "cost",
  "currency",
  "priceVersion",
  "durationMs",
  "firstByteMs",
];

function csvLines(rows: readonly StoredCallRow[]): string {
  return csv(
    rows.map((row) => {
      const cells = line(row);
      return columns.map((name) => cells[name]);
    }),
  );
}

function csv(rows: readonly (readonly unknown[])[]): string {
  const cast = { boolean: String };
  return stringify(
    rows.map((cells) => [...cells]),
    { escape_formulas: true, record_delimiter: "windows", cast },
  );
}

function jsonLines(rows: readonly StoredCallRow[]): string {
  return rows.map((row) => `${JSON.stringify(line(row))}\n`).join("");
}
