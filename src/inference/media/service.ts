/** Implements MediaService: calls the handler and converts its reply to messages of the RPC. */
import { create } from "@bufbuild/protobuf";
import type { ServiceImpl } from "@connectrpc/connect";
import {
  type ExchangeMediaResponse,
  ExchangeMediaResponseSchema,
  type MediaService,
} from "../../../gen/uas/inference/v1/media_service_pb.ts";
import { asMessages, type Messages } from "../../core/sink.ts";
import type { InferenceHandlers } from "../handlers.ts";
import { contextOf } from "../service.ts";

/** Creates the service. */
export function createMediaService(
  handlers: Pick<InferenceHandlers, "exchangeMedia">,
): ServiceImpl<typeof MediaService> {
  return {
    exchangeMedia(request, rpc) {
      const context = contextOf(rpc);
      return asMessages(
        (sink, signal) => handlers.exchangeMedia(request, { ...context, signal }, sink),
        messages,
        rpc.signal,
      );
    },
  };
}

const messages: Messages<Buffer, ExchangeMediaResponse> = {
  head: ({ status, headers }) =>
    create(ExchangeMediaResponseSchema, {
      part: { case: "head", value: { status, headers } },
    }),
  of: (value) =>
    value.length === 0
      ? []
      : [create(ExchangeMediaResponseSchema, { part: { case: "chunk", value } })],
};
