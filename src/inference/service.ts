/** Implements InferenceService: calls the handlers and converts their replies to messages of RPCs. */
import { create } from "@bufbuild/protobuf";
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import type { GenerateEvent, Generation } from "../../gen/uas/inference/v1/generate_pb.ts";
import {
  EmbedResponseSchema,
  ExchangeHeadSchema,
  type ExchangeResponse,
  ExchangeResponseSchema,
  type InferenceService,
  type StreamGenerateResponse,
} from "../../gen/uas/inference/v1/inference_service_pb.ts";
import { anonymous, type Caller, callerKey, requestIdKey } from "../core/caller.ts";
import { ErrorCode, GatewayError } from "../core/errors.ts";
import { modelMessage, modelPage, type Catalogue, type OfferedSince } from "./catalogue.ts";
import type { CountTokens } from "./count-tokens.ts";
import type { InferenceHandlers } from "./handlers.ts";
import { admitCaller, keyCallerOf } from "../core/access.ts";
import { admitModel } from "./pipeline/admit.ts";
import type { CallContext } from "./pipeline/context.ts";
import { asMessages, type Messages, withinSettleWait } from "../core/sink.ts";

export interface InferenceServiceOptions {
  readonly catalogue: Catalogue;
  /** Since when models are offered, for lists of them. */
  readonly offeredSince: OfferedSince;
  readonly handlers: InferenceHandlers;
  readonly countTokens: CountTokens;
}

export function createInferenceService({
  catalogue,
  offeredSince,
  handlers,
  countTokens,
}: InferenceServiceOptions): ServiceImpl<typeof InferenceService> {
  return {
    exchange(request, rpc) {
      const context = contextOf(rpc);
      return asMessages(
        (sink, signal) => handlers.exchange(request, { ...context, signal }, sink),
        wireMessages,
        rpc.signal,
      );
    },

    countTokens(request, context) {
      admitCaller(context.values.get(callerKey));
      return countTokens(request, contextOf(context));
    },

    async embed(request, context) {
      const response = create(EmbedResponseSchema);
      const { settled } = await handlers.embed(request, contextOf(context), {
        whole({ status, headers }, body) {
          response.head = create(ExchangeHeadSchema, { status, headers });
          response.body = body;
        },
        head: refuseStream,
        chunk: refuseStream,
      });
      await withinSettleWait(settled);
      return response;
    },

    generate: ({ generation }, context) =>
      handlers.generate(requireGeneration(generation), contextOf(context)),

    streamGenerate({ generation }, rpc) {
      const context = contextOf(rpc);
      const requested = requireGeneration(generation);
      return asMessages(
        (sink, signal) => handlers.streamGenerate(requested, { ...context, signal }, sink),
        typedMessages(),
        rpc.signal,
      );
    },

    listModels(request, { values }) {
      const models = catalogue.list(admitReader(values.get(callerKey)));
      return modelPage(models, request, offeredSince);
    },

    getModel({ modelKey }, { values }) {
      const caller = admitReader(values.get(callerKey));
      return { model: modelMessage(admitModel(catalogue, caller, modelKey), offeredSince) };
    },
  };
}

/** The context of a call by RPC. */
export function contextOf({ values, signal, requestHeader }: HandlerContext): CallContext {
  const caller = keyCallerOf(values.get(callerKey));
  const idempotencyKey = requestHeader.get("idempotency-key") ?? undefined;
  return { caller, requestId: values.get(requestIdKey), idempotencyKey, signal };
}

function requireGeneration(generation: Generation | undefined): Generation {
  if (generation !== undefined) return generation;
  throw new GatewayError(ErrorCode.INVALID_REQUEST, "generation: send the generation request", {
    param: "generation",
  });
}

/** The caller of the model list: a key sees the models it may use, others see all. @throws GatewayError ACCESS_DENIED */
function admitReader(caller: Caller | undefined): Caller {
  if (caller === undefined || caller.kind === "key") admitCaller(caller);
  return caller ?? anonymous;
}

const wireMessages: Messages<Buffer, ExchangeResponse> = {
  head: ({ status, headers }) =>
    create(ExchangeResponseSchema, { part: { case: "head", value: { status, headers } } }),
  // A plain object equals the result of `create`, without the schema's work for each chunk.
  of: (value) =>
    value.length === 0
      ? []
      : [{ $typeName: ExchangeResponseSchema.typeName, part: { case: "chunk", value } }],
};

/** Converts events to messages; the first one names the request members that the vendor's style could not carry. */
function typedMessages(): Messages<GenerateEvent[], StreamGenerateResponse> {
  let dropped: string[] = [];
  return {
    head(head) {
      dropped = [...(head.dropped ?? [])];
      return undefined;
    },
    of(events) {
      const messages = events.map((event) => message(event));
      const [first] = messages;
      if (first === undefined) return [];
      first.dropped = dropped;
      dropped = [];
      return messages;
    },
  };
}

function message(event: GenerateEvent): StreamGenerateResponse {
  return { $typeName: "uas.inference.v1.StreamGenerateResponse", event, dropped: [] };
}

/** Embeddings are never streamed. */
function refuseStream(): never {
  throw new Error("a streamed reply to an embeddings request");
}
