/** Filters of the call log, from the address to the contract. */
import type { MessageInitShape } from "@bufbuild/protobuf";
import {
  CallEnding,
  type CallFilterSchema,
  CallOutcome,
} from "../../../gen/uas/billing/v1/call_pb.ts";
import { moneyOf, parseUsd } from "../common/money.ts";
import { type CallSearch, ranges } from "../common/search.ts";
import { localZone, momentIn, timestampOf } from "../common/time.ts";
import { errorCodeOf } from "../common/contract.ts";

const outcomes = { succeeded: CallOutcome.SUCCEEDED, failed: CallOutcome.FAILED } as const;

/** The endings by their words in addresses. */
export const endings: Readonly<Record<NonNullable<CallSearch["ending"]>, CallEnding>> = {
  completed: CallEnding.COMPLETED,
  refused: CallEnding.REFUSED,
  upstream_refused: CallEnding.UPSTREAM_REFUSED,
  upstream_failed: CallEnding.UPSTREAM_FAILED,
  client_gone: CallEnding.CLIENT_GONE,
  gateway_stopped: CallEnding.GATEWAY_STOPPED,
  gateway_failed: CallEnding.GATEWAY_FAILED,
  out_of_balance: CallEnding.OUT_OF_BALANCE,
  gateway_lost: CallEnding.GATEWAY_LOST,
  cancelled: CallEnding.CANCELLED,
  key_disabled: CallEnding.KEY_DISABLED,
  key_deleted: CallEnding.KEY_DELETED,
  key_expired: CallEnding.KEY_EXPIRED,
};

const statuses = {
  "2xx": { statusMin: 200, statusMax: 299 },
  "4xx": { statusMin: 400, statusMax: 499 },
  "5xx": { statusMin: 500, statusMax: 599 },
} as const;

/** The filter of a request for a page's search. A range counts back from now; a span takes precedence over it. */
export function filterOf(search: CallSearch): MessageInitShape<typeof CallFilterSchema> {
  const { model, key, outcome, code, request, status, ending, vendor, cost } = search;
  const costNanos = cost === undefined ? undefined : parseUsd(cost);
  return {
    ...timesOf(search),
    ...(status && statuses[status]),
    ...(ending && { ending: endings[ending] }),
    ...(costNanos !== undefined && { costMin: moneyOf(costNanos) }),
    vendor: vendor ?? "",
    ...(outcome && { outcome: outcomes[outcome] }),
    model: model ?? "",
    keyId: key ?? "",
    errorCode: errorCodeOf(code ?? ""),
    requestId: request ?? "",
  };
}

function timesOf({ range, from, to, zone = localZone() }: CallSearch) {
  if (from === undefined && to === undefined) {
    return range && { fromTime: timestampOf(Date.now() - ranges[range]) };
  }
  return {
    ...(from !== undefined && { fromTime: timestampOf(momentIn(zone, from)) }),
    ...(to !== undefined && { toTime: timestampOf(momentIn(zone, to)) }),
  };
}
