/** A call log of any size, made by the database itself, and the questions that a console asks of it. */
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { createClient } from "@connectrpc/connect";
import type { Pool } from "pg";
import { CallOutcome } from "../../gen/uas/billing/v1/call_pb.ts";
import { CallService } from "../../gen/uas/billing/v1/call_service_pb.ts";
import { UsageBucket, UsageGroup } from "../../gen/uas/billing/v1/usage_pb.ts";
import { UsageService } from "../../gen/uas/billing/v1/usage_service_pb.ts";
import { billingPartitions } from "../../src/billing/jobs.ts";
import { CallFeed } from "../../src/billing/calls/feed.ts";
import { createCallService } from "../../src/billing/calls/service.ts";
import { createUsageService } from "../../src/billing/calls/usage-service.ts";
import { systemClock } from "../../src/core/clock.ts";
import { ErrorCode } from "../../src/core/errors.ts";
import { callerKey, operator } from "../../src/core/caller.ts";
import { ensurePartitions } from "../../src/db/partition.ts";
import { createDirectTransport } from "../../src/edge/rpc/direct-transport.ts";
import { serve } from "../../src/core/contract-rules.ts";
import { money } from "../../src/core/money.ts";
import { newId } from "../../src/core/uuid.ts";

/** A log that is filled. */
export interface FilledLog {
  /** The account that has four fifths of all calls. */
  readonly accountId: string;
  /** One of its ten keys. */
  readonly keyId: string;
  /** The request id of its oldest call, and of one in the middle of its log. */
  readonly requestIds: readonly [oldest: string, middle: string];
  /** When its calls begin and end, in milliseconds since 1970. */
  readonly fromMs: number;
  readonly toMs: number;
}

/**
 * A question, by what a person would call it. Each try of it is another one if there are several.
 */
export interface LogQuestion {
  readonly title: string;
  readonly ask: (attempt: number) => Promise<{ readonly found: number }>;
}

/** How long the calls of a log took to come: they are in two partitions at least. */
const spanMs = 30 * 86_400_000;

/** How many rows are written by one statement. */
const rowsAtOnce = 100_000;

/**
 * One statement's calls, evenly over their time. The large account has eight keys and nine models, and one more that is one call
 * in a hundred thousand; the twenty others a key and three models each. One call in fifty that failed, one in fifty thousand with an error of its own.
 */
const fillSql = `
  with written as (insert into call (id, account_id, request_id, key_id, model, vendor, path, stream, status, error_code, ending,
      usage_source, input_tokens, cached_input_tokens, cache_write_tokens, output_tokens, reasoning_tokens, cost,
      held, price_version, start_time, duration_ms, first_byte_ms, upstream_request_id, dropped, discount_bp, charged)
    select (left(hex, 8) || '-' || right(hex, 4) || '-7' || substr(md5(n::text), 1, 3) || '-8'
          || substr(md5(n::text), 4, 3) || '-' || substr(md5(n::text), 7, 12))::uuid,
        case when n % 5 < 4 then $1::uuid else ($2::uuid[])[1 + n % 20] end,
        'request-' || n, ($3::text[])[1 + case when n % 5 < 4 then n % 10 else 0 end],
        case when n % 100000 = 7 then 'rare-1' else 'model-' || n % (case when n % 5 < 4 then 9 else 3 end) end, 'vendor-' || n % 3,
        '/v1/chat/completions', n % 2 = 0,
        case when n % 50 = 3 then 502 else 200 end,
        case when n % 50000 = 3 then 'internal_error' when n % 50 = 3 then 'upstream_error' else '' end,
        case when n % 50 = 3 then 4 else 1 end,
        1, n % 5000, 0, 0, n % 900, 0, n % 1009 * 1000, 2000000, 'f41c0ce82457be5b', to_timestamp(ms / 1000.0),
        n % 9000, n % 700, 'up-' || n, '', 0, true
      from (select n, $4::bigint + ($5::bigint * n) / $6::bigint as ms,
          lpad(to_hex($4::bigint + ($5::bigint * n) / $6::bigint), 12, '0') as hex
        from generate_series($7::bigint, $8::bigint) n) numbered
    returning *)
  select usage_add(array(
    select row(account_id, uuid_hour(id), key_id, model, vendor, count(*),
        count(*) filter (where ending not in (1, 5, 10)), sum(input_tokens), 0, 0, sum(output_tokens), 0, 0, 0,
        sum(cost), 0)::usage_hour
      from written group by account_id, uuid_hour(id), key_id, model, vendor))`;

/** Fills the log of an empty database with this many calls. */
export async function fillLog(pool: Pool, rows: number): Promise<FilledLog> {
  const [accountId, others] = [newId(), Array.from({ length: 20 }, newId)];
  const keyIds = Array.from({ length: 10 }, newId);
  const toMs = Date.now();
  const fromMs = toMs - spanMs;
  await ensurePartitions(pool, billingPartitions, { now: new Date(fromMs) });
  for (let first = 1; first <= rows; first += rowsAtOnce) {
    const last = Math.min(rows, first + rowsAtOnce - 1);
    const shape = [accountId, others, keyIds, fromMs, spanMs, rows + 1, first, last];
    await pool.query(fillSql, shape);
  }
  // What the server does by itself, some time after so many rows.
  await pool.query("vacuum analyze call");
  await pool.query("vacuum analyze usage_hour");
  const middle = Math.floor(rows / 10) * 5 + 1;
  const requestIds = ["request-1", `request-${middle}`] as const;
  return { accountId, keyId: keyIds[0] ?? "", requestIds, fromMs, toMs };
}

/** What a console asks, of the large account and of all accounts together. */
export function logQuestions(pool: Pool, log: FilledLog): LogQuestion[] {
  const { calls, usage } = clients(pool);
  const { accountId, keyId, requestIds, fromMs, toMs } = log;
  const range = { fromTime: timestampFromMs(fromMs), toTime: timestampFromMs(toMs) };
  type Filter = Parameters<typeof calls.listCalls>[0]["filter"];
  const list = (title: string, filter: Filter, of = accountId): LogQuestion => ({
    title,
    ask: async () => {
      const { calls: found } = await calls.listCalls({ accountId: of, pageSize: 50, filter });
      return { found: found.length };
    },
  });
  const count = (title: string, filter: Filter, of = accountId): LogQuestion => ({
    title,
    ask: async () => {
      const asked = { accountId: of, filter: { ...filter, ...range } };
      return { found: (await calls.getCallHistogram(asked)).bars.length };
    },
  });
  const add = (
    title: string,
    bucket: UsageBucket,
    group: UsageGroup,
    of = accountId,
  ): LogQuestion => ({
    title,
    ask: async () => {
      const asked = { accountId: of, ...range, bucket, group };
      return { found: (await usage.getUsageSeries(asked)).series.length };
    },
  });
  // Another place of the log at each try.
  const at = (attempt: number) =>
    timestampFromMs(fromMs + ((attempt * 7_919) % 29) * 86_400_000 + 1);
  const failed = { outcome: CallOutcome.FAILED };
  return [
    list("newest calls", {}),
    {
      title: "calls before some day",
      ask: async (attempt) => {
        const filter = { toTime: at(attempt + 1) };
        return {
          found: (await calls.listCalls({ accountId, pageSize: 50, filter })).calls.length,
        };
      },
    },
    list("calls of a key", { keyId }),
    list("calls of a common model", { model: "model-3" }),
    list("calls of a rare model", { model: "rare-1" }),
    list("failed calls", failed),
    list("calls with a rare error", { errorCode: ErrorCode.INTERNAL_ERROR }),
    list("failed calls with a rare error", { ...failed, errorCode: ErrorCode.INTERNAL_ERROR }),
    list("calls that cost most", { costMin: money(1_008_000n) }),
    list("calls by request id", { requestId: requestIds[1] }),
    list("calls of nobody's model", { model: "no such" }),
    list("newest calls of all accounts", {}, ""),
    list("failed calls of all accounts", failed, ""),
    {
      title: "a call with its receipt",
      ask: async (attempt) => {
        const { call } = await calls.getCall({
          call: { case: "requestId", value: requestIds[attempt % 2] ?? "" },
        });
        return { found: call === undefined ? 0 : 1 };
      },
    },
    count("histogram of 30 days", {}),
    count("histogram of a model's failures", { model: "model-3", ...failed }),
    count("histogram of an error", { errorCode: ErrorCode.UPSTREAM_ERROR }),
    add("usage of 30 days by day and model", UsageBucket.DAY, UsageGroup.MODEL),
    add("usage of 30 days by hour and key", UsageBucket.HOUR, UsageGroup.KEY),
    add("usage of all accounts by day", UsageBucket.DAY, UsageGroup.NONE, ""),
  ];
}

function clients(pool: Pool) {
  // Nobody watches: it opens nothing.
  const feed = new CallFeed({ pool, url: "" });
  const transport = createDirectTransport(
    [
      serve(CallService, createCallService({ clock: systemClock, pool, feed })),
      serve(UsageService, createUsageService({ clock: systemClock, pool })),
    ],
    [
      (next) => (request) => {
        request.contextValues.set(callerKey, operator);
        return next(request);
      },
    ],
  );
  return {
    calls: createClient(CallService, transport),
    usage: createClient(UsageService, transport),
  };
}
