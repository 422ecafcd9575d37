/** The RPC that shows what a call cost and why. */
import { create } from "@bufbuild/protobuf";
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import {
  type BillingService,
  GetReceiptResponseSchema,
} from "../../gen/uas/billing/v1/billing_service_pb.ts";
import type { Receipt } from "../../gen/uas/billing/v1/receipt_pb.ts";
import { ErrorCode, GatewayError } from "../errors.ts";
import { invalid, parseId } from "./invalid.ts";
import type { Queryable } from "./queryable.ts";
import { readReceipt } from "./receipt.ts";
import { receiptMessage } from "./receipt-message.ts";
import { isOperator, parseScope } from "./scope.ts";

/** Which call: in an account, or for operators in all; by one of its ids. */
export interface ReceiptRequest {
  readonly accountId: string;
  readonly callId: string;
  readonly requestId: string;
}

/** Makes it. */
export function createReceiptRpcs(
  pool: Queryable,
): Pick<ServiceImpl<typeof BillingService>, "getReceipt"> {
  return {
    async getReceipt(request, context) {
      return create(GetReceiptResponseSchema, {
        receipt: await getReceipt(pool, request, context),
      });
    },
  };
}

/** Reads a receipt for whoever asks. @throws GatewayError INVALID_REQUEST; NOT_FOUND */
export async function getReceipt(
  pool: Queryable,
  request: ReceiptRequest,
  context: Pick<HandlerContext, "values">,
): Promise<Receipt> {
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
  return receiptMessage(rows, isOperator(context));
}
