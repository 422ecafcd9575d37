/** The RPC that shows what a call cost and why. */
import { create } from "@bufbuild/protobuf";
import type { ServiceImpl } from "@connectrpc/connect";
import {
  type BillingService,
  GetReceiptResponseSchema,
} from "../../gen/uas/billing/v1/billing_service_pb.ts";
import { ErrorCode, GatewayError } from "../errors.ts";
import { invalid, parseId } from "./invalid.ts";
import type { Queryable } from "./queryable.ts";
import { readReceipt } from "./receipt.ts";
import { receiptMessage } from "./receipt-message.ts";
import { isOperator, parseScope } from "./scope.ts";

/** Makes it. */
export function createReceiptRpcs(
  pool: Queryable,
): Pick<ServiceImpl<typeof BillingService>, "getReceipt"> {
  return {
    async getReceipt(request, context) {
      const accountId = parseScope(request.accountId, context);
      const { requestId } = request;
      if ((request.callId === "") === (requestId === "")) {
        throw invalid("call_id", "send one of call_id and request_id");
      }
      const callId = request.callId === "" ? undefined : parseId("call_id", request.callId);
      // No call has such an id, and the database would not even compare it.
      const rows = requestId.includes("\0")
        ? undefined
        : await readReceipt(pool, { accountId, callId, requestId });
      if (rows === undefined) {
        throw new GatewayError(ErrorCode.NOT_FOUND, "there is no such call");
      }
      const receipt = receiptMessage(rows, isOperator(context));
      return create(GetReceiptResponseSchema, { receipt });
    },
  };
}
