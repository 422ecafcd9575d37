/** The RPCs that look into the call log. Its lists are among those of billing. */
import { setTimeout as delay } from "node:timers/promises";
import { create } from "@bufbuild/protobuf";
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import { ExportFormat } from "../../../gen/uas/billing/v1/call_pb.ts";
import {
  type CallService,
  type ExportCallsRequest,
  ExportCallsResponseSchema,
  GetCallResponseSchema,
  type TailCallsRequest,
  type TailCallsResponse,
  TailCallsResponseSchema,
} from "../../../gen/uas/billing/v1/call_service_pb.ts";
import { tailMs, tailPauseMs, tailQuietMs } from "../../config/log-limits.ts";
import { callMessage, type StoredCallRow } from "../message.ts";
import { answering, type Queryable } from "../queryable.ts";
import { parseEnum, parseLimit, parseRange } from "../range.ts";
import { getReceipt } from "../receipt-rpcs.ts";
import { parseScope } from "../scope.ts";
import { Where } from "../where.ts";
import { callEvents } from "./events.ts";
import { exportCalls } from "./export.ts";
import type { CallFeed } from "./feed.ts";
import { addFound, addSought, type CallQuery, parseFilter } from "./filter.ts";
import { countCalls } from "./histogram.ts";

/** What {@link createCallService} needs. */
export interface CallServiceOptions {
  /** The plain pool of the database. */
  readonly pool: Queryable;
  /** Tells which calls are written. */
  readonly feed: CallFeed;
  /** How long a live view says nothing, in milliseconds. Default: see limits. */
  readonly quietMs?: number;
}

/** How many bars a histogram has, where the request does not say; and at most. */
const barLimits = { usual: 60, most: 200 };

/** Makes the implementation of `uas.billing.v1.CallService`. */
export function createCallService(options: CallServiceOptions): ServiceImpl<typeof CallService> {
  const pool = answering(options.pool);
  return {
    async getCall(request, context) {
      const receipt = await getReceipt(pool, request, context);
      const { call } = receipt;
      if (call === undefined) throw new Error("a receipt without its call");
      return create(GetCallResponseSchema, { call, receipt, events: callEvents(call, receipt) });
    },

    async getCallHistogram(request, context) {
      const accountId = parseScope(request.accountId, context);
      const calls = parseFilter(accountId, request.filter);
      const nowMs = Date.now();
      const range = parseRange(request.filter ?? {}, nowMs);
      const bars = parseLimit("bar_limit", request.barLimit, barLimits);
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
    // What comes meanwhile is one message.
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
  addFound(where, query);
  addSought(where, query);
  const text = `select * from call where ${where.text} order by id`;
  return (await pool.query<StoredCallRow>(text, where.values)).rows;
}

async function* writeExport(pool: Queryable, request: ExportCallsRequest, context: HandlerContext) {
  const accountId = parseScope(request.accountId, context);
  const query = parseFilter(accountId, request.filter);
  const format = parseEnum("format", request.format, ExportFormat);
  const { pageToken } = request;
  const pieces = exportCalls(pool, { query, format, pageToken }, context.signal);
  const encoder = new TextEncoder();
  for await (const { text, nextPageToken } of pieces) {
    yield create(ExportCallsResponseSchema, { data: encoder.encode(text), nextPageToken });
  }
}
