/** Turns a filter of the call log into SQL conditions. */
import { CallEnding } from "../../../gen/uas/billing/v1/billing_pb.ts";
import { type CallFilter, CallOutcome } from "../../../gen/uas/billing/v1/call_pb.ts";
import type { Money } from "../../../gen/uas/type/v1/money_pb.ts";
import { firstId } from "../../db/partition.ts";
import { parseMoney } from "../../core/money.ts";
import { invalid } from "../../core/validation.ts";
import { momentOf, parseEnum, parseText } from "./range.ts";
import { isFailed } from "./usage-query.ts";
import type { Where } from "../../db/where.ts";

/** A filter that has been checked. `undefined` members match any call. */
export interface CallQuery {
  readonly accountId: string | undefined;
  /** Milliseconds since 1970: inclusive. */
  readonly fromMs: number | undefined;
  /** Milliseconds since 1970: exclusive. */
  readonly toMs: number | undefined;
  readonly requestId: string | undefined;
  readonly outcome: CallOutcome;
  readonly model: string | undefined;
  readonly keyId: string | undefined;
  /** Conditions without an index: terms with `?` for their values. */
  readonly others: readonly (readonly [term: string, value: unknown])[];
}

/** The largest HTTP status. */
const statusMax = 599;

/** Checks a filter; without one every call of the account matches. @throws GatewayError INVALID_REQUEST */
export function parseFilter(
  accountId: string | undefined,
  filter: CallFilter | undefined,
): CallQuery {
  if (filter === undefined) {
    const any = { fromMs: undefined, toMs: undefined, requestId: undefined };
    const none = { model: undefined, keyId: undefined, others: [] };
    return { accountId, ...any, ...none, outcome: CallOutcome.UNSPECIFIED };
  }
  const { fromTime, toTime } = filter;
  const others = [
    ["ending = ?", parseEnum("ending", filter.ending, CallEnding) || undefined],
    ["status >= ?", parseStatus("status_min", filter.statusMin)],
    ["status <= ?", parseStatus("status_max", filter.statusMax)],
    ["error_code = ?", parseText("error_code", filter.errorCode)],
    ["cost >= ?", parseCost("cost_min", filter.costMin)],
    ["cost <= ?", parseCost("cost_max", filter.costMax)],
    ["vendor = ?", parseText("vendor", filter.vendor)],
  ] as const;
  return {
    accountId,
    fromMs: fromTime && momentOf(fromTime),
    toMs: toTime && momentOf(toTime),
    requestId: parseText("request_id", filter.requestId),
    outcome: parseEnum("outcome", filter.outcome, CallOutcome),
    model: parseText("model", filter.model),
    keyId: parseText("key_id", filter.keyId),
    others: others.filter(([, value]) => value !== undefined),
  };
}

/** Adds the conditions that an index serves. */
export function addIndexedConditions(where: Where, query: CallQuery): void {
  const { accountId, fromMs, toMs, requestId, outcome } = query;
  where
    .and("account_id = ?", accountId)
    .and("request_id = ?", requestId)
    .and("id >= ?", fromMs === undefined ? undefined : firstId(new Date(fromMs)))
    .and("id < ?", toMs === undefined ? undefined : firstId(new Date(toMs)));
  if (outcome === CallOutcome.FAILED) where.also(isFailed);
}

/** Adds the conditions that are checked row by row. Returns whether there are any. */
export function addOtherConditions(where: Where, query: CallQuery): boolean {
  const { outcome, model, keyId, others } = query;
  where.and("model = ?", model).and("key_id = ?", keyId);
  if (outcome === CallOutcome.SUCCEEDED) where.also(`not (${isFailed})`);
  for (const [term, value] of others) where.and(term, value);
  return (
    outcome === CallOutcome.SUCCEEDED ||
    model !== undefined ||
    keyId !== undefined ||
    others.length > 0
  );
}

function parseStatus(param: string, status: number): number | undefined {
  if (status >= 0 && status <= statusMax) return status || undefined;
  throw invalid(param, `${param} must be an HTTP status, 0 to ${statusMax}`);
}

function parseCost(param: string, cost: Money | undefined): string | undefined {
  if (cost === undefined) return undefined;
  const nanos = parseMoney(param, cost);
  if (nanos < 0n) throw invalid(param, `${param} must not be negative`);
  return nanos.toString();
}
