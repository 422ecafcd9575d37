/** InferenceService: calls hosted models for the caller's account. */
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import type { Generation } from "../../gen/uas/inference/v1/generate_pb.ts";
import type { InferenceService } from "../../gen/uas/inference/v1/inference_service_pb.ts";
import {
  anonymous,
  type Caller,
  callerKey,
  type KeyCaller,
  requestIdKey,
  requireActive,
} from "../caller.ts";
import { ErrorCode, GatewayError } from "../errors.ts";
import { type Catalogue, modelMessage } from "./catalogue.ts";
import type { CountTokens } from "./count-tokens.ts";
import type { Exchange } from "./exchange.ts";
import { modelPage } from "./model-page.ts";
import type { ExchangeContext } from "./run-options.ts";

export interface InferenceServiceOptions {
  readonly catalogue: Catalogue;
  readonly exchange: Exchange;
  readonly countTokens: CountTokens;
}

export function createInferenceService({
  catalogue,
  exchange,
  countTokens,
}: InferenceServiceOptions): ServiceImpl<typeof InferenceService> {
  return {
    exchange: (request, context) => exchange.wire(request, contextOf(context)),

    countTokens(request, context) {
      requireActive(keyCaller(context.values.get(callerKey)));
      return countTokens(request, contextOf(context));
    },

    embed: (request, context) => exchange.embed(request, contextOf(context)),

    generate: ({ generation }, context) => exchange.generate(asked(generation), contextOf(context)),

    streamGenerate: ({ generation }, context) =>
      exchange.streamGenerate(asked(generation), contextOf(context)),

    listModels(request, { values }) {
      return modelPage(catalogue.list(customer(values.get(callerKey))), request);
    },

    getModel({ modelKey }, { values }) {
      const caller = customer(values.get(callerKey));
      return { model: modelMessage(catalogue.authorize(caller, modelKey)) };
    },
  };
}

function contextOf({ values, signal, requestHeader }: HandlerContext): ExchangeContext {
  const caller = keyCaller(values.get(callerKey));
  const idempotencyKey = requestHeader.get("idempotency-key") ?? undefined;
  return { caller, requestId: values.get(requestIdKey), idempotencyKey, signal };
}

function asked(generation: Generation | undefined): Generation {
  if (generation !== undefined) return generation;
  throw new GatewayError(ErrorCode.INVALID_REQUEST, "generation: say what to generate", {
    param: "generation",
  });
}

/** Whoever may see models: for a key what it may use, for others all. @throws GatewayError ACCESS_DENIED */
function customer(caller: Caller | undefined): Caller {
  if (caller === undefined || caller.kind === "key") requireActive(keyCaller(caller));
  return caller ?? anonymous;
}

/** The access option lets nobody else through; an operator calling in process has no account to charge. */
function keyCaller(caller: Caller | undefined): KeyCaller {
  if (caller?.kind === "key") return caller;
  throw new GatewayError(ErrorCode.ACCESS_DENIED, "Calls to models need an API key: send one");
}
