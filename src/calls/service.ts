/**
 * Implements InferenceService and MediaService: calls the handlers and converts their replies to
 * messages of RPCs.
 */
import { create } from "@bufbuild/protobuf";
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import type { GenerateEvent, Generation } from "../../gen/uas/inference/v1/generate_pb.ts";
import {
  type CompleteResponse,
  CompleteResponseSchema,
  type ExchangeHead,
  ExchangeHeadSchema,
  type ExchangeResponse,
  ExchangeResponseSchema,
  type InferenceService,
  type StreamGenerateResponse,
} from "../../gen/uas/inference/v1/inference_service_pb.ts";
import {
  type ExchangeMediaResponse,
  ExchangeMediaResponseSchema,
  type MediaService,
} from "../../gen/uas/inference/v1/media_service_pb.ts";
import { anonymous, type Caller, callerKey, requestIdKey } from "../core/caller.ts";
import { admitCaller, keyCallerOf } from "../core/caller-rules.ts";
import { ErrorCode, GatewayError } from "../core/errors.ts";
import {
  asMessages,
  type Messages,
  type SentReply,
  type Sink,
  withinSettleWait,
} from "../core/sink.ts";
import { type Catalogue, modelMessage, type ModelFacts, modelPage } from "./catalogue.ts";
import type { CountTokens } from "./adapters/count-tokens.ts";
import type { InferenceHandlers } from "./handlers.ts";
import type { Admission } from "./admission.ts";
import type { CallContext } from "./pipeline/context.ts";

export interface InferenceServiceOptions {
  readonly admission: Pick<Admission, "model">;
  readonly catalogue: Catalogue;
  /** For lists of models. */
  readonly modelFacts: ModelFacts;
  /** Reads the price list of a caller's account; empty if it has none. */
  readonly priceListOf: (caller: Caller) => Promise<string>;
  readonly handlers: InferenceHandlers;
  readonly countTokens: CountTokens;
}

export function createInferenceService({
  admission,
  catalogue,
  modelFacts,
  priceListOf,
  handlers,
  countTokens,
}: InferenceServiceOptions): ServiceImpl<typeof InferenceService> {
  const factsFor = async (caller: Caller): Promise<ModelFacts> => ({
    ...modelFacts,
    priceList: await priceListOf(caller),
  });
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

    embed: (request, rpc) => wholeReply((sink) => handlers.embed(request, contextOf(rpc), sink)),
    rerank: (request, rpc) => wholeReply((sink) => handlers.rerank(request, contextOf(rpc), sink)),
    moderate: (request, rpc) =>
      wholeReply((sink) => handlers.moderate(request, contextOf(rpc), sink)),

    complete(request, rpc) {
      const context = contextOf(rpc);
      return asMessages(
        (sink, signal) => handlers.complete(request, { ...context, signal }, sink),
        completionMessages,
        rpc.signal,
      );
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

    async listModels(request, { values }) {
      const caller = admitReader(values.get(callerKey));
      return modelPage(catalogue.list(caller), request, await factsFor(caller));
    },

    async getModel({ modelKey }, { values }) {
      const caller = admitReader(values.get(callerKey));
      const model = admission.model(caller, modelKey);
      return { model: modelMessage(model, await factsFor(caller)) };
    },
  };
}

/** The context of a call by RPC. */
export function contextOf({ values, signal, requestHeader }: HandlerContext): CallContext {
  const caller = keyCallerOf(values.get(callerKey));
  const idempotencyKey = requestHeader.get("idempotency-key") ?? undefined;
  const traceparent = requestHeader.get("traceparent") ?? undefined;
  return { caller, requestId: values.get(requestIdKey), idempotencyKey, traceparent, signal };
}

function requireGeneration(generation: Generation | undefined): Generation {
  if (generation !== undefined) return generation;
  throw new GatewayError(ErrorCode.INVALID_REQUEST, "generation: send the generation request", {
    param: "generation",
  });
}

/**
 * The caller of the model list: a key sees the models it may use, others see all. @throws
 * GatewayError ACCESS_DENIED
 */
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

const completionMessages: Messages<Buffer, CompleteResponse> = {
  head: ({ status, headers }) =>
    create(CompleteResponseSchema, { part: { case: "head", value: { status, headers } } }),
  of: (value) =>
    value.length === 0 ? [] : [create(CompleteResponseSchema, { part: { case: "chunk", value } })],
};

/**
 * Converts events to messages; the first one names the request members that the vendor's style
 * could not carry.
 */
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

/** Gathers a reply that is never streamed: the members of its message. */
async function wholeReply(
  run: (sink: Sink<Buffer>) => Promise<SentReply>,
): Promise<{ head: ExchangeHead; body: Buffer }> {
  let reply: { head: ExchangeHead; body: Buffer } | undefined;
  const { settled } = await run({
    whole({ status, headers }, body) {
      reply = { head: create(ExchangeHeadSchema, { status, headers }), body };
    },
    head: refuseStream,
    chunk: refuseStream,
  });
  await withinSettleWait(settled);
  if (reply === undefined) throw new Error("no reply came");
  return reply;
}

function refuseStream(): never {
  throw new Error("a streamed reply to a request that has none");
}

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
