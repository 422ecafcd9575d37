/** The conditions of a filter. */
import { firstId } from "../../db/partition.ts";
import { Where } from "../../db/where.ts";
import { ErrorCode } from "../../core/errors.ts";
import { errorWord } from "../../core/error-words.ts";
import { type CallFilter, CallOutcome } from "../../../gen/uas/billing/v1/call_pb.ts";
import { momentOf } from "./range.ts";
import { isFailed } from "./usage-sums.ts";

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

/** Reads a filter; without one every call of the account matches. */
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
    ["ending = ?", filter.ending || undefined],
    ["status >= ?", filter.statusMin || undefined],
    ["status <= ?", filter.statusMax || undefined],
    ["error_code = ?", errorWord(filter.errorCode) || undefined],
    ["status = ?", filter.errorCode === ErrorCode.UNAUTHENTICATED ? 401 : undefined],
    ["cost >= ?", filter.costMin?.amountNanos.toString()],
    ["cost <= ?", filter.costMax?.amountNanos.toString()],
    ["vendor = ?", filter.vendor || undefined],
  ] as const;
  return {
    accountId,
    fromMs: fromTime && momentOf(fromTime),
    toMs: toTime && momentOf(toTime),
    requestId: filter.requestId || undefined,
    outcome: filter.outcome,
    model: filter.model || undefined,
    keyId: filter.keyId || undefined,
    others: others.filter(([, value]) => value !== undefined),
  };
}

/** Adds the conditions that an index serves. */
export function addIndexedConditions(where: Where, query: CallQuery): void {
  const { accountId, fromMs, toMs, requestId, outcome } = query;
  where
    .and("account_id = ?", accountId)
    .and("id >= ?", fromMs === undefined ? undefined : firstId(new Date(fromMs)))
    .and("id < ?", toMs === undefined ? undefined : firstId(new Date(toMs)));
  if (requestId !== undefined) addRequestId(where, requestId);
  if (outcome === CallOutcome.FAILED) where.also(isFailed);
}

/**
 * Adds the condition that a call has a request id. The index of request ids has no calls whose id
 * begins with the same 11 characters (a quarter of a second): those are found by that time.
 */
export function addRequestId(where: Where, requestId: string): void {
  const id = where.value(requestId);
  const indexed = `request_id = ${id} and left(request_id, 11) <> left(id::text, 11)`;
  const begin = /^[0-9a-f]{8}-[0-9a-f]{2}/.exec(requestId)?.[0];
  if (begin === undefined) return void where.also(indexed);
  const first = where.value(`${begin}00-0000-0000-000000000000`);
  const last = where.value(`${begin}ff-ffff-ffff-ffffffffffff`);
  where.also(`(${indexed} or request_id = ${id} and id between ${first} and ${last})`);
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
