/** Filters of the call log, from the address to the contract. */
import type { MessageInitShape } from "@bufbuild/protobuf";
import { CallOutcome, type CallFilterSchema } from "../../../gen/uas/billing/v1/call_pb.ts";
import { type CallSearch, ranges } from "../search.ts";
import { timestampOf } from "../time.ts";

const outcomes = { succeeded: CallOutcome.SUCCEEDED, failed: CallOutcome.FAILED } as const;

/** The filter that a page's search stands for. A range counts back from now. */
export function filterOf(search: CallSearch): MessageInitShape<typeof CallFilterSchema> {
  const { range, model, key, outcome, code, request } = search;
  return {
    ...(range && { fromTime: timestampOf(Date.now() - ranges[range]) }),
    ...(outcome && { outcome: outcomes[outcome] }),
    model: model ?? "",
    keyId: key ?? "",
    errorCode: code ?? "",
    requestId: request ?? "",
  };
}
