/** The RPC of usage statistics. */
import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { ServiceImpl } from "@connectrpc/connect";
import { UsageBucket, UsageGroup, UsageMetric } from "../../gen/uas/billing/v1/usage_pb.ts";
import {
  GetUsageSeriesResponseSchema,
  type UsageService,
} from "../../gen/uas/billing/v1/usage_service_pb.ts";
import { bucketStarts, parseTimeZone } from "./buckets.ts";
import { answering, type Queryable } from "./queryable.ts";
import { parseEnum, parseLimit, parseRange, parseText, summedUntilMs } from "./range.ts";
import { isOperator, parseScope } from "./scope.ts";
import { usageSeries } from "./usage-message.ts";
import { queryUsage } from "./usage-query.ts";

/** What {@link createUsageService} needs. */
export interface UsageServiceOptions {
  /** The plain pool of the database. */
  readonly pool: Queryable;
}

/** How many groups have a series of their own, where the request does not say; and at most. */
const groupLimits = { usual: 10, most: 100 };

/** Makes the implementation of `uas.billing.v1.UsageService`. */
export function createUsageService(options: UsageServiceOptions): ServiceImpl<typeof UsageService> {
  const pool = answering(options.pool);
  return {
    async getUsageSeries(request, context) {
      const accountId = parseScope(request.accountId, context);
      const nowMs = Date.now();
      const { fromMs, toMs } = parseRange(request, nowMs);
      const timeZone = parseTimeZone(request.timeZone);
      const bucket = parseEnum("bucket", request.bucket, UsageBucket);
      const group = parseEnum("group", request.group, UsageGroup);
      const metric = parseEnum("metric", request.metric, UsageMetric);
      const startsMs = bucketStarts({ fromMs, toMs, bucket, timeZone });
      const rows = await queryUsage(pool, {
        accountId,
        model: parseText("model", request.model),
        keyId: parseText("key_id", request.keyId),
        fromMs,
        toMs: summedUntilMs(toMs, nowMs),
        startsMs,
        group,
        groupLimit: parseLimit("group_limit", request.groupLimit, groupLimits),
        metric,
      });
      return create(GetUsageSeriesResponseSchema, {
        bucketTimes: startsMs.map(timestampFromMs),
        ...usageSeries(rows, { isOperator: isOperator(context), metric }),
        toTime: timestampFromMs(toMs),
      });
    },
  };
}
