/** InferenceService: calls hosted models for the caller's account. */
import type { ServiceImpl } from "@connectrpc/connect";
import type { InferenceService } from "../../gen/uas/inference/v1/inference_service_pb.ts";
import { type Caller, callerKey, requestIdKey } from "../caller.ts";
import { ErrorCode, GatewayError } from "../errors.ts";
import { type Catalogue, modelMessage } from "./catalogue.ts";
import type { Exchange } from "./exchange.ts";
import { modelPage } from "./model-page.ts";

export interface InferenceServiceOptions {
  readonly catalogue: Catalogue;
  readonly exchange: Exchange;
}

export function createInferenceService({
  catalogue,
  exchange,
}: InferenceServiceOptions): ServiceImpl<typeof InferenceService> {
  return {
    exchange: (request, { values, signal }) =>
      exchange(request, {
        caller: keyCaller(values.get(callerKey)),
        requestId: values.get(requestIdKey),
        signal,
      }),

    generate() {
      throw new GatewayError(ErrorCode.INVALID_REQUEST, "Not served yet; use Exchange");
    },

    streamGenerate() {
      throw new GatewayError(ErrorCode.INVALID_REQUEST, "Not served yet; use Exchange");
    },

    listModels: (request, { values }) =>
      modelPage(catalogue.list(keyCaller(values.get(callerKey))), request),

    getModel({ modelKey }, { values }) {
      return {
        model: modelMessage(catalogue.authorize(keyCaller(values.get(callerKey)), modelKey)),
      };
    },
  };
}

/** The access option lets nobody else through; an operator calling in process has no account to charge. */
function keyCaller(caller: Caller | undefined): Extract<Caller, { kind: "key" }> {
  if (caller?.kind === "key") return caller;
  throw new GatewayError(ErrorCode.ACCESS_DENIED, "Calls to models need an API key: send one");
}
