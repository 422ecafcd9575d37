/** The handlers that REST calls directly, by the contract's methods. */
import type { DescMethod } from "@bufbuild/protobuf";
import {
  EmbedRequestSchema,
  ExchangeRequestSchema,
  InferenceService,
} from "../gen/uas/inference/v1/inference_service_pb.ts";
import {
  FollowLinkRequestSchema,
  ExchangeRequestSchema as NativeRequestSchema,
} from "../gen/uas/native/v1/native_service_pb.ts";
import type { DirectCall, DirectHandlers, HandleWire } from "./facade/options.ts";
import type { InferenceHandlers } from "./inference/handlers.ts";
import type { CallContext } from "./inference/pipeline/context.ts";
import type { NativeHandlers } from "./native/service.ts";

/** Connects the facade with the handlers. Messages are made without `create`: each call makes one, and it costs 2 µs. */
export function directHandlers(
  inference: InferenceHandlers,
  native: NativeHandlers,
): DirectHandlers {
  const { exchange, embed } = InferenceService.method;
  return {
    wire: new Map<DescMethod, HandleWire>([
      [
        exchange,
        (fields, call) => {
          const message = { $typeName: ExchangeRequestSchema.typeName, ...fields };
          return inference.exchange(message, contextOf(call), call);
        },
      ],
      [
        embed,
        ({ path, query, headers, body }, call) => {
          const message = { $typeName: EmbedRequestSchema.typeName, path, query, headers, body };
          return inference.embed(message, contextOf(call), call);
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

function contextOf({ keyCaller, requestId, idempotencyKey, signal }: DirectCall): CallContext {
  return { caller: keyCaller, requestId, idempotencyKey, signal };
}
