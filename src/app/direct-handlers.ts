/** Connects the routes of model calls with the handlers of the rooms. */
import type { DescMethod } from "@bufbuild/protobuf";
import {
  CompleteRequestSchema,
  EmbedRequestSchema,
  InferenceService,
  ModerateRequestSchema,
  RerankRequestSchema,
} from "../../gen/uas/inference/v1/inference_service_pb.ts";
import {
  ExchangeMediaRequestSchema,
  MediaService,
} from "../../gen/uas/inference/v1/media_service_pb.ts";
import {
  ExchangeRequestSchema as NativeRequestSchema,
  FollowLinkRequestSchema,
} from "../../gen/uas/native/v1/native_service_pb.ts";
import type { DirectCall, DirectHandlers, HandleWire } from "../edge/rest/options.ts";
import type { HandleBody, InferenceHandlers } from "../calls/handlers.ts";
import type { CallContext } from "../calls/pipeline/context.ts";
import type { NativeHandlers } from "../native/service.ts";

/**
 * Connects the facade with the handlers. Messages are plain objects: `create` would cost each call
 * 2 µs.
 */
export function directHandlers(
  inference: InferenceHandlers,
  native: NativeHandlers,
): DirectHandlers {
  const { exchange, embed, rerank, moderate, complete } = InferenceService.method;
  const { exchangeMedia } = MediaService.method;
  return {
    wire: new Map<DescMethod, HandleWire>([
      [exchange, (request, call) => inference.exchange(request, contextOf(call), call)],
      [embed, withBody(EmbedRequestSchema.typeName, inference.embed)],
      [rerank, withBody(RerankRequestSchema.typeName, inference.rerank)],
      [moderate, withBody(ModerateRequestSchema.typeName, inference.moderate)],
      [complete, withBody(CompleteRequestSchema.typeName, inference.complete)],
      [
        exchangeMedia,
        ({ mediaOperation, path, query, headers, body, strict, reportCost, form }, call) => {
          const { contentType = "", pieces } = form ?? {};
          const fields = { path, query, headers, body, strict, reportCost, contentType };
          const $typeName = ExchangeMediaRequestSchema.typeName;
          const message = { $typeName, operation: mediaOperation, ...fields };
          return inference.exchangeMedia(message, contextOf(call), call, pieces);
        },
      ],
    ]),
    native(fields, call) {
      const message = { $typeName: NativeRequestSchema.typeName, ...fields };
      return native.exchange(message, contextOf(call), call);
    },
    followLink(fields, call) {
      const message = { $typeName: FollowLinkRequestSchema.typeName, ...fields };
      return native.followLink(message, call.signal, call);
    },
  };
}

function contextOf(call: DirectCall): CallContext {
  const { keyCaller, requestId, idempotencyKey, traceparent, signal } = call;
  return { caller: keyCaller, requestId, idempotencyKey, traceparent, signal };
}

type WireFields = Parameters<HandleWire>[0];

/** Passes a request with one JSON body on, as the message of its RPC. */
function withBody<Name extends string>(
  $typeName: Name,
  handle: HandleBody<
    { readonly $typeName: Name } & Pick<
      WireFields,
      "dialect" | "path" | "query" | "headers" | "body"
    >
  >,
): HandleWire {
  return ({ dialect, path, query, headers, body }, call) =>
    handle({ $typeName, dialect, path, query, headers, body }, contextOf(call), call);
}
